"""Log messages from outside of calls get their numbers when they are sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_app.models import Change, LoggedMessage, Session
from mcp_app.models import streams as logged_rows
from mcp_app.models.streams import LOGGED
from tests.streams.logging_rows import erase, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]


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
    monkeypatch.setattr(logged_rows, "AT_ONCE", 2)
    for text in "abc":
        LoggedMessage.objects.log([row.pk], text)
    assert numbered(row) == [(1, "a"), (2, "b")]
    assert numbered(row, 2) == [(3, "c")]


def test_one_change_stands_for_many(
    row: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
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
