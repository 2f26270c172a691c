"""The log on databases that lock rows; run by `tests/test_databases.py`."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connections, transaction

from mcp_app.models import Session, Stream
from mcp_app.streams.appending import Batch, write
from tests.streams.logging_rows import OWNER, events, further, opened

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


def test_who_gives_way_begins_again(row: Session) -> None:
    """Somebody locks the same rows in the other order."""
    first, second = sorted((opened(row), opened(row)))
    gains = [further(first, b"1"), further(second, b"1")]
    holds, done = threading.Event(), threading.Event()

    def other() -> None:
        rows = Stream.objects.select_for_update()
        try:
            with transaction.atomic():
                rows.get(pk=second)
                holds.set()
                # By now the batch has the first row, and waits for the second.
                done.wait(1)
                rows.get(pk=first)
        except OperationalError:
            return
        finally:
            connections.close_all()

    thread = threading.Thread(target=other)
    thread.start()
    holds.wait()
    assert write(Batch(gains, OWNER)) == [first, second]
    thread.join()
    assert (len(events(first)), len(events(second))) == (1, 1)
