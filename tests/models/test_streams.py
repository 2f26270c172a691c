"""A session that is deleted takes its log along, whoever writes to it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction
from django.db.models.deletion import Collector

from mcp_app.models import Change, Event, LoggedMessage, Session, Stream
from mcp_app.models import streams as logged_rows
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.models.streams import LOGGED
from mcp_app.models.transactions import ATTEMPTS, INNODB_DEADLOCK
from tests.streams.logging_rows import erase, opened, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


@pytest.fixture(autouse=True)
def erased() -> Iterator[None]:
    yield
    erase()


def test_what_begins_while_a_session_is_deleted_goes_too() -> None:
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


# -- log messages ----------------------------------------------------------------------


@pytest.fixture
def row() -> Iterator[Session]:
    yield own_session()
    Change.objects.all().delete()
    erase()


def numbered(row: Session, after: int = 0) -> list[tuple[int, str]]:
    return LoggedMessage.objects.numbered(row.pk, after)


def told() -> list[str]:
    return list(Change.objects.filter(kind=LOGGED).values_list("ref", flat=True))


def test_messages_are_numbered_when_they_are_sent(row: Session) -> None:
    for text in "abc":
        LoggedMessage.objects.log([row.pk], text)
    assert set(LoggedMessage.objects.values_list("seq", flat=True)) == {None}
    assert numbered(row) == [(1, "a"), (2, "b"), (3, "c")]
    assert numbered(row, 2) == [(3, "c")]
    LoggedMessage.objects.log([row.pk], "d")
    assert numbered(row, 3) == [(4, "d")]
    row.refresh_from_db()
    assert row.logged == 4
    assert set(told()) == {str(row.pk)}


def test_each_session_has_numbers_of_its_own(row: Session) -> None:
    other = own_session()
    LoggedMessage.objects.log([row.pk, other.pk], "a")
    LoggedMessage.objects.log([other.pk], "b")
    assert (numbered(row), numbered(other)) == ([(1, "a")], [(1, "a"), (2, "b")])


def test_a_few_at_once(row: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_rows, "LOG_BATCH_SIZE", 2)
    for text in "abc":
        LoggedMessage.objects.log([row.pk], text)
    assert numbered(row) == [(1, "a"), (2, "b")]
    assert numbered(row, 2) == [(3, "c")]


def test_one_change_for_many(row: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_rows, "MOST_TOLD", 1)
    LoggedMessage.objects.log([row.pk, own_session().pk], "a")
    assert told() == ["*"]


def test_a_session_that_is_gone(row: Session) -> None:
    LoggedMessage.objects.log([row.pk], "a")
    Session.objects.all().delete()
    assert not LoggedMessage.objects.exists()
    LoggedMessage.objects.log([row.pk], "late")
    assert numbered(row) == []
    LoggedMessage.objects.all().delete()
