"""What is new since the last look."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.models import Change
from mcp_app.streams.listeners import digest_of
from mcp_app.wakeup import changes, news
from mcp_app.wakeup.news import News, NewsReader

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

RESOURCE = ("uri", digest_of("shop://orders/1"))


def record(kind: str, ref: str) -> Change:
    change: Change = Change.objects.create(kind=kind, ref=ref, created_ms=0)
    return change


@pytest.fixture
def reader() -> NewsReader:
    """A reader that has seen all there was."""
    made = NewsReader()
    made.seen(made.read())
    return made


def test_at_first_everything_is_new() -> None:
    found = NewsReader().read()
    assert found.everything
    assert found.rows_changed


def test_nothing_is_new(reader: NewsReader) -> None:
    with CaptureQueriesContext(connection) as statements:
        found = reader.read()
    assert len(statements) == 1
    assert (found.rows, found.everything, found.rows_changed) == ((), False, False)


def test_new_rows_in_their_order(reader: NewsReader) -> None:
    record("tool", "1")
    record(*RESOURCE)
    found = reader.read()
    assert found.rows == (("tool", "1"), RESOURCE)
    assert not found.everything


def test_news_stay_news_until_they_were_seen(reader: NewsReader) -> None:
    """What a check found is new to the next one where loading it failed."""
    record("tool", "1")
    first = reader.read()
    assert reader.read() == first
    reader.seen(first)
    assert reader.read().rows == ()


def test_a_row_with_a_smaller_id_was_committed_late(reader: NewsReader) -> None:
    late, last = record("tool", "1"), record("tool", "2")
    number = late.pk
    late.delete()
    reader.seen(reader.read())
    assert not reader.read().everything
    Change(id=number, kind="tool", ref="1", created_ms=0).save(force_insert=True)
    assert number < last.pk
    assert reader.read().everything


def test_pruned_rows_are_no_news(reader: NewsReader) -> None:
    for number in range(3):
        record("tool", str(number))
    reader.seen(reader.read())
    Change.objects.filter(ref__in=["0", "1"]).delete()
    assert reader.read().rows_changed is False
    record("prompt", "7")
    found = reader.read()
    assert found.rows == (("prompt", "7"),)
    assert not found.everything


def test_too_many_rows_are_everything(
    reader: NewsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "MOST_ROWS", 2)
    for number in range(2):
        record("tool", str(number))
    assert not reader.read().everything
    record("tool", "2")
    assert reader.read().everything


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        (("tool", "1"), True),
        (("server", "*"), True),
        (("unheard_of", "1"), True),
        (RESOURCE, False),
        (("list", "tools:*"), False),
    ],
)
def test_what_makes_the_caches_old(row: tuple[str, str], changed: bool) -> None:
    assert News(rows=(row,)).rows_changed is changed


@pytest.mark.parametrize(
    ("rows", "topics"),
    [
        ([("tool", "1"), ("tool", "2")], [("tools", None)]),
        ([("resourcetemplate", "1"), ("resource", "1")], [("resources", None)]),
        ([("prompt", "1")], [("prompts", None)]),
        ([("server", "1")], [(name, None) for name in changes.LISTS]),
        ([("session", "1")], []),
        ([RESOURCE, RESOURCE], [(RESOURCE[1], None)]),
        ([("list", "tools:*")], [("tools", None)]),
        (
            [("list", "tools:staff"), ("list", "tools:shop")],
            [("tools", "staff"), ("tools", "shop")],
        ),
    ],
)
def test_topics(rows: Any, topics: Any) -> None:
    assert News(rows=tuple(rows)).topics() == topics


def test_everything_names_no_topic() -> None:
    assert News(rows=(("tool", "1"),), everything=True).topics() == []
