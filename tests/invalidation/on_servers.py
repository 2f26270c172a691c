"""Folding beside transactions that last, which SQLite does not have.

`tests.test_databases` runs it on the databases that do.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

import pytest
from django.db import connections, transaction

from mcp_app.invalidation import compaction
from tests.invalidation.test_compaction import numbers, record

pytestmark = pytest.mark.databases

PATIENCE_S: Final = 60


@pytest.mark.django_db(transaction=True)
def test_a_fold_does_not_wait_for_what_is_not_committed() -> None:
    """A site's transaction may last; its changes are folded when it has ended."""
    record("tool", "1")
    recorded, folded = Event(), Event()

    def site() -> None:
        with transaction.atomic():
            record("tool", "2")
            recorded.set()
            folded.wait(PATIENCE_S)
        connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        lasting = pool.submit(site)
        recorded.wait(PATIENCE_S)
        compaction.compact()
        assert numbers() == {("tool", "1"): 1}
        folded.set()
        lasting.result()
    compaction.compact()
    assert numbers() == {("tool", "1"): 1, ("tool", "2"): 2}
