"""What is new since the last look."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.invalidation import change_reader, compaction
from mcp_app.invalidation.change_reader import (
    ChangedTopics,
    ChangeReader,
    ChangeSet,
    MissedTopics,
    missed_since,
)
from mcp_app.models import Change, Counter, Topic
from mcp_app.models.fields import digest

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

RESOURCE = ("uri", digest("shop://orders/1"))
TOOL = ("tool", "1")


def record(kind: str, ref: str) -> Change:
    change: Change = Change.objects.create(kind=kind, ref=ref)
    return change


@pytest.fixture
def reader() -> ChangeReader:
    """A reader that has seen all there was."""
    made = ChangeReader()
    made.advance_past(made.read_changes())
    return made


def seen(reader: ChangeReader) -> tuple[tuple[str, str], ...]:
    found = reader.read_changes()
    assert not found.everything
    reader.advance_past(found)
    return found.rows


def test_at_first_everything_is_new() -> None:
    found = ChangeReader().read_changes()
    assert found.everything
    assert found.definitions_changed
    assert found.rights_changed


def test_nothing_is_new(reader: ChangeReader) -> None:
    with CaptureQueriesContext(connection) as statements:
        found = reader.read_changes()
    assert len(statements) == 1
    assert (found.rows, found.everything) == ((), False)
    assert not found.definitions_changed


def test_new_rows_in_their_order(reader: ChangeReader) -> None:
    record(*TOOL)
    record(*RESOURCE)
    record(*TOOL)
    assert reader.read_changes().rows == (TOOL, RESOURCE)


def test_news_stay_news_until_they_were_seen(reader: ChangeReader) -> None:
    """What a check found is new to the next one where loading it failed."""
    record(*TOOL)
    first = reader.read_changes()
    assert reader.read_changes() == first
    reader.advance_past(first)
    assert reader.read_changes().rows == ()


def test_a_row_with_a_smaller_id_that_was_committed_late(reader: ChangeReader) -> None:
    late, last = record("tool", "1"), record("tool", "2")
    number = late.pk
    late.delete()
    assert seen(reader) == (("tool", "2"),)
    Change(id=number, kind="tool", ref="1").save(force_insert=True)
    assert number < last.pk
    assert seen(reader) == (("tool", "1"),)


def test_what_was_folded_before_it_was_seen_is_new(reader: ChangeReader) -> None:
    record(*TOOL)
    compaction.compact()
    with CaptureQueriesContext(connection) as statements:
        found = reader.read_changes()
    assert len(statements) == 1
    assert found.rows == (TOOL,)
    reader.advance_past(found)
    assert seen(reader) == ()


def test_what_was_seen_before_it_was_folded_is_not_new(reader: ChangeReader) -> None:
    record(*TOOL)
    assert seen(reader) == (TOOL,)
    compaction.compact()
    assert seen(reader) == ()


def test_what_was_folded_with_something_unseen_is_new(reader: ChangeReader) -> None:
    record(*TOOL)
    assert seen(reader) == (TOOL,)
    record(*TOOL)
    compaction.compact()
    assert seen(reader) == (TOOL,)


def test_what_was_raised_twice_is_new(reader: ChangeReader) -> None:
    """Only the ids of the last fold are known."""
    record(*TOOL)
    compaction.compact()
    record(*TOOL)
    compaction.compact()
    assert seen(reader) == (TOOL,)
    record(*TOOL)
    assert seen(reader) == (TOOL,)
    record(*TOOL)
    compaction.compact()
    record(*TOOL)
    compaction.compact()
    assert seen(reader) == (TOOL,)


def test_many_rows_of_one_topic_are_one(
    reader: ChangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_IDS", 2)
    for _ in range(3):
        record(*TOOL)
    assert seen(reader) == (TOOL,)
    compaction.compact()
    # Which rows they were is not kept: to tell it again is harmless.
    assert seen(reader) == (TOOL,)


def test_whoever_has_seen_less_than_is_kept_reads_everything(
    reader: ChangeReader,
) -> None:
    record("list", "tools:*")
    compaction.compact()
    Topic.objects.update(changed_ms=1)
    compaction.prune_topics()
    assert not Topic.objects.exists()
    assert reader.read_changes().everything
    reader.advance_past(reader.read_changes())
    assert seen(reader) == ()


def test_definitions_are_kept() -> None:
    record(*TOOL)
    compaction.compact()
    Topic.objects.update(changed_ms=1)
    compaction.prune_topics()
    assert Topic.objects.get().kind == "tool"
    assert Counter.objects.get().floor == 0


def test_an_emptied_database_is_another_one(reader: ChangeReader) -> None:
    record(*TOOL)
    compaction.compact()
    assert seen(reader) == (TOOL,)
    Topic.objects.all().delete()
    Counter.objects.all().delete()
    assert reader.read_changes().everything


@pytest.mark.parametrize("folded", [False, True])
def test_too_many_rows_are_everything(
    reader: ChangeReader, monkeypatch: pytest.MonkeyPatch, folded: bool
) -> None:
    monkeypatch.setattr(change_reader, "MOST_ROWS", 2)
    for number in range(2):
        record("tool", str(number))
    assert not reader.read_changes().everything
    record("tool", "2")
    if folded:
        compaction.compact()
    assert reader.read_changes().everything


@pytest.mark.parametrize("folded", [False, True])
def test_calls_that_end_are_named_among_too_many(
    reader: ChangeReader, monkeypatch: pytest.MonkeyPatch, folded: bool
) -> None:
    """Nothing else says that a client or staff have ended them."""
    before = ("cancelled", "1:before")
    record(*before)
    assert seen(reader) == (before,)
    monkeypatch.setattr(change_reader, "MOST_ROWS", 2)
    ends = [("cancelled", "1:a"), ("stopped", "1:b")]
    for name in (("tool", "1"), ("question", "q"), ("prompt", "1"), *ends):
        record(*name)
    if folded:
        compaction.compact()
    found = reader.read_changes()
    assert found.everything
    assert sorted(found.rows) == ends
    reader.advance_past(found)
    assert reader.read_changes().rows == ()


def test_calls_that_end_are_named_after_more_than_is_kept(reader: ChangeReader) -> None:
    record("list", "tools:*")
    compaction.compact()
    assert seen(reader)
    for name in (("list", "tools:*"), ("stopped", "1:b")):
        record(*name)
        compaction.compact()
    Topic.objects.filter(kind="list").update(changed_ms=1)
    compaction.prune_topics()
    assert Counter.objects.get().floor == 2
    found = reader.read_changes()
    assert (found.everything, found.rows) == (True, (("stopped", "1:b"),))


def test_numbers_of_what_was_folded(reader: ChangeReader) -> None:
    record(*TOOL)
    record("prompt", "1")
    assert reader.read_changes().numbers == {}
    reader.advance_past(reader.read_changes())
    compaction.compact()
    record("prompt", "1")
    found = reader.read_changes()
    assert found.rows == (("prompt", "1"),)
    assert found.numbers == {TOOL: found.number}
    reader.advance_past(found)
    assert reader.last_number == found.number
    assert reader.uncompacted_ids == found.uncompacted_ids != frozenset()


def test_what_was_missed() -> None:
    record(*TOOL)
    compaction.compact()
    first = missed_since(0)
    second, third = record("prompt", "1"), record("list", "tools:*")
    compaction.compact()
    last = record("prompt", "1")
    with CaptureQueriesContext(connection) as statements:
        found = missed_since(first.number)
    assert len(statements) == 1
    assert (found.number, found.everything) == (first.number + 1, False)
    changes = {each.name: each for each in found.changes if each.number}
    assert changes.keys() == {("prompt", "1"), ("list", "tools:*")}
    assert changes["prompt", "1"].ids == {second.pk}
    assert changes["list", "tools:*"].ids == {third.pk}
    assert ChangedTopics(("prompt", "1"), None, frozenset({last.pk})) in found.changes
    last.delete()
    assert missed_since(found.number) == MissedTopics(found.number)


def test_what_was_missed_cannot_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    record("list", "tools:*")
    compaction.compact()
    number = missed_since(0).number
    assert not missed_since(0).everything
    # There is no such number.
    assert missed_since(number + 1) == MissedTopics(number, everything=True)
    Topic.objects.update(changed_ms=1)
    compaction.prune_topics()
    assert missed_since(0).everything
    assert not missed_since(number).everything
    for _ in range(3):
        record(*TOOL)
    monkeypatch.setattr(change_reader, "MOST_ROWS", 2)
    assert missed_since(number).everything


def test_what_no_stream_is_told_of_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_reader, "MOST_ROWS", 2)
    number = missed_since(0).number
    for folded in (True, False):
        for kind in ("session", "question", "cancelled"):
            record(kind, "1")
        told = record("list", f"tools:{folded}")
        if folded:
            compaction.compact()
    found = missed_since(number)
    assert not found.everything
    assert [each.name for each in found.changes] == [
        ("list", "tools:True"),
        ("list", "tools:False"),
    ]
    assert told.pk in found.changes[1].ids


@pytest.mark.parametrize(
    ("row", "definitions", "rights"),
    [
        (TOOL, True, False),
        (("server", "*"), True, False),
        (("unheard_of", "1"), True, False),
        (RESOURCE, False, False),
        (("list", "tools:*"), False, False),
        (("session", "1"), False, False),
        (("rights", "1"), False, True),
    ],
)
def test_what_makes_the_caches_old(
    row: tuple[str, str], definitions: bool, rights: bool
) -> None:
    found = ChangeSet(rows=(row,))
    assert found.definitions_changed is definitions
    assert found.rights_changed is rights


def test_refs() -> None:
    found = ChangeSet(rows=(("session", "1"), TOOL, ("session", "*")))
    assert found.refs_of_kind("session") == {"1", "*"}
    assert found.refs_of_kind("rights") == frozenset()
