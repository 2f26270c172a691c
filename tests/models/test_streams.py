"""A session that is deleted takes its log along, whoever writes to it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.db.models.deletion import Collector

from mcp_app.models import Event, Session, Stream
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.models.transactions import ATTEMPTS, INNODB_DEADLOCK
from tests.streams.logging_rows import erase, opened, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


@pytest.fixture(autouse=True)
def erased() -> Iterator[None]:
    yield
    erase()


def test_what_begins_while_a_session_is_deleted_goes_too() -> None:
    """Whoever cascades to a session has no lock before."""
    row = own_session()
    opened(row, b"1")
    collector = Collector(using="default", origin=row)
    collector.collect([row])
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_in_own_connection, opened, row, b"2").result()
    collector.delete()
    assert not Session.objects.exists()
    assert not Stream.objects.exists()
    assert not Event.objects.exists()


def _in_own_connection(function: Any, *args: Any) -> None:
    try:
        function(*args)
    finally:
        connections.close_all()


def test_deleting_that_gave_way_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own_session()
    delete, conflicts = SessionQuerySet._delete_locked, [1, 2]

    def conflicting(self: SessionQuerySet, using: str) -> Any:
        if conflicts:
            raise OperationalError(conflicts.pop() and INNODB_DEADLOCK, "deadlock")
        return delete(self, using)

    monkeypatch.setattr(SessionQuerySet, "_delete_locked", conflicting)
    Session.objects.all().delete()
    assert not Session.objects.exists()
    own_session()
    conflicts.extend(range(ATTEMPTS * 2))
    with pytest.raises(OperationalError):
        Session.objects.all().delete()
    conflicts[:] = [1]
    with pytest.raises(OperationalError), transaction.atomic():
        Session.objects.all().delete()
    monkeypatch.setattr(SessionQuerySet, "_delete_locked", delete)
    Session.objects.all().delete()
