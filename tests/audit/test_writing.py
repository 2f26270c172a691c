"""A batch is written as it is, once, on every database."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)
from django.test.utils import CaptureQueriesContext

from mcp_app.audit import writing
from mcp_app.audit.tallies import Tallies
from mcp_app.audit.writing import (
    MAX_NAME_LENGTH,
    MAX_TEXT_BYTES,
    CallBatch,
    RefusedBatch,
    may_be_cut,
    stored_name,
    write,
)
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.call_writing import rows_per_statement
from mcp_app.models.calls import CallQuerySet, CallStatisticQuerySet, CallWriterQuerySet
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.pools.connections import TOGETHER
from tests.audit.reading import totals
from tests.audit.records import batch, digest, record
from tests.audit.refusing import refusing

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("no_calls")]

KEY: Final = ("default", "tool", "add", "answered")
SEVERAL: Final = rows_per_statement("sqlite", len((*Call.SHARED, *Call.OWN)))
ODD: Final = ["a\tb", "a\nb\r", "\\N", "\\", "a\\tb", "\\.", "é𝄞", "%s '\"", "a b "]


def now() -> int:
    row = CallWriter.objects.create(id="now", number=1, written_ms=NowMilliseconds())
    row.refresh_from_db()
    row.delete()
    return row.written_ms


def test_a_row_has_what_was_recorded() -> None:
    before = now()
    write(batch(record(0.25, ago=10, failure="ab12", error="No.", user="maria")))
    row = Call.objects.get()
    columns = {name: getattr(row, name) for name in (*Call.SHARED, *Call.OWN)}
    assert before - 10_500 < columns.pop("time_ms") <= now() - 9_000
    assert columns == {
        "server": "default",
        "kind": "tool",
        "name": "add",
        "version": 1,
        "outcome": "answered",
        "principal": "user",
        "user_id": "maria",
        "user_name": "maria",
        "principal_client": "family",
        "client_name": "c",
        "client_version": "1",
        "session": "handle",
        "revision": "2026-07-28",
        "took_us": 250_000,
        "size": 100,
        "arguments_size": 2,
        "arguments_digest": digest(b"{}"),
        "failure": "ab12",
        "arguments": "",
        "error": "No.",
    }
    assert str(row) == "tool add: answered"


@pytest.mark.parametrize("count", [1, SEVERAL, 2 * SEVERAL + 1])
def test_however_many_are_written_together_each_has_its_row(count: int) -> None:
    write(batch(*(record(error=str(number)) for number in range(count))))
    errors = Call.objects.order_by("id").values_list("error", flat=True)
    assert list(errors) == [str(number) for number in range(count)]


def test_texts_of_every_kind() -> None:
    write(batch(*(record(error=text, client=text, user=text) for text in ODD)))
    rows = Call.objects.order_by("id").values_list("error", "client_name", "user_id")
    assert sorted(rows) == sorted((text, text, text) for text in ODD)
    # What no database takes is left out.
    Call.objects.all().delete()
    write(batch(record(error="a\0b\ud83d", client="\0", user="\udc00x")))
    row = Call.objects.get()
    assert (row.error, row.client_name, row.user_id) == ("ab?", "", "?x")


def test_names_that_look_alike_are_counted_apart() -> None:
    names = ["a", "A", "a ", "á"]
    write(batch(*(record(name=name) for name in names)))
    write(batch(*(record(name=name) for name in names)))
    found = {name: calls for (_, _, name, _), calls in totals().items()}
    assert found == dict.fromkeys(names, 2)


def test_long_names_stay_different() -> None:
    uris = [f"test://{'é' * 400}/{end}" for end in range(2)]
    write(batch(*(record(name=uri) for uri in uris)))
    names = set(Call.objects.values_list("name", flat=True))
    assert names == {stored_name(uri) for uri in uris}
    assert {len(name) for name in names} == {MAX_NAME_LENGTH}
    assert {name for _, _, name, _ in totals()} == names


def test_no_text_of_others_takes_more_bytes_than_it_may() -> None:
    names = [f"{'𝄞' * 200}{end}" for end in range(2)]
    long = "𝄞" * 600
    write(batch(*(record(name=name, client=long, error=long) for name in names)))
    rows = Call.objects.all()
    assert {row.name for row in rows} == {stored_name(name) for name in names}
    assert all(may_be_cut(row.name) and len(row.name) < MAX_NAME_LENGTH for row in rows)
    for row in rows:
        texts = [row.name, row.client_name, row.error]
        assert {len(text.encode()) for text in texts} == {MAX_TEXT_BYTES}
    assert not may_be_cut("a" * (MAX_NAME_LENGTH - 1))


def test_counters_are_raised() -> None:
    for took in (0.0005, 0.004, 0.03):
        write(batch(record(took), record(took), record(outcome="crashed")))
    assert totals() == {KEY: 6, (*KEY[:3], "crashed"): 3}
    answered = CallStatistic.objects.filter(outcome="answered", seconds=3_600)
    # At the stroke of an hour there are two of them.
    found = list(answered)
    assert sum(row.total_us for row in found) == 69_000
    assert max(row.most_us for row in found) == 30_000
    assert sum(row.to_1 + row.to_5 + row.to_50 for row in found) == 6
    assert "add: " in str(found[0])


def test_calls_are_counted_when_they_began() -> None:
    write(batch(record(ago=3 * 3_600), record(ago=7_200), record(), record()))
    times = Call.objects.values_list("time_ms", flat=True)
    for seconds in (60, 3_600):
        starts = [time - time % (seconds * 1_000) for time in times]
        rows = CallStatistic.objects.filter(seconds=seconds)
        found = dict(rows.values_list("start_ms", "calls"))
        assert found == {start: starts.count(start) for start in starts}


def test_many_counters_cost_a_few_statements() -> None:
    many = [record(name=f"tool{number}") for number in range(450)]
    write(batch(*many[:1]))
    with CaptureQueriesContext(connection) as queries:
        write(batch(*many))
    # On SQLite there are 41 counters to one, and rows are three more.
    assert len(queries) < 20 + 900 // 41
    assert len(totals()) == 450
    assert Call.objects.count() == 451


def test_what_was_only_counted_has_no_row() -> None:
    tallies = Tallies()
    tallies.add_calls(0, KEY, [1_000, 2_000], 2)
    write(batch(tallies=tallies))
    assert Call.objects.count() == 0
    assert (totals(), totals("dropped")) == ({KEY: 2}, {KEY: 2})


# -- refused --------------------------------------------------------------------------

UNSAYABLE: Final = OperationalError(1366, "Incorrect string value")
TOO_WIDE: Final = OperationalError(1118, "Row size too large")


def persistently(batch: CallBatch, times: int = 8) -> int:
    """Write a batch as the log does; return how often it broke."""
    for broken in range(times):
        try:
            write(batch)
        except OperationalError:
            continue
        return broken
    raise AssertionError("It broke for ever.")


@pytest.mark.parametrize(
    ("error", "breaks"),
    [
        (UNSAYABLE, 0),
        (TOO_WIDE, 2),
        (DataError("too long"), 0),
        (IntegrityError("a check"), 0),
    ],
)
@pytest.mark.parametrize("bad", [{0}, {6}, {2, 3, 4}, set(range(7))])
def test_only_a_row_that_is_refused_is_dropped(
    monkeypatch: pytest.MonkeyPatch, error: Exception, breaks: int, bad: set[int]
) -> None:
    refusing(monkeypatch, error, "bad")
    given = batch(*(record(client="bad" if n in bad else "c") for n in range(7)))
    assert persistently(given) == breaks
    assert given.refused == RefusedBatch(len(bad), 0, error)
    assert [row.client_name for row in Call.objects.all()] == ["c"] * (7 - len(bad))
    assert totals() == {KEY: 7}
    assert sum(totals("dropped").values()) == len(bad)
    write(given)
    assert totals() == {KEY: 7}
    assert given.refused.rows == len(bad)


def break_commit(monkeypatch: pytest.MonkeyPatch, happens: bool = True) -> None:
    """Let nobody learn whether the next commit is one."""
    kind: Any = type(connections["default"])
    commit = kind._commit

    def broken(self: Any) -> None:
        monkeypatch.setattr(kind, "_commit", commit)
        if happens:
            commit(self)
        raise OperationalError("The connection was cut.")

    monkeypatch.setattr(kind, "_commit", broken)


def test_a_broken_commit_counts_refusals_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, DataError("too long"), "bad")
    given = batch(record(client="bad"), record())
    break_commit(monkeypatch)
    assert persistently(given) == 1
    assert Call.objects.count() == 1
    assert (totals(), totals("dropped")) == ({KEY: 2}, {KEY: 1})
    assert given.refused.rows == 1


@pytest.mark.parametrize(
    "error",
    [
        OperationalError(1205, "Lock wait timeout exceeded"),
        OperationalError("database is locked"),
        OperationalError(1114, "The table is full"),
        OperationalError(1213, "Deadlock found when trying to get lock"),
    ],
)
def test_what_passes_by_itself_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    given = batch(record(client="bad"), record())
    # Even where it came to look for refusals.
    given.broke = TOGETHER
    with monkeypatch.context() as busy:
        refusing(busy, error, "bad")
        with pytest.raises(AssertionError, match="for ever"):
            persistently(given)
    assert Call.objects.count() == 0
    assert persistently(given) == 0
    assert (Call.objects.count(), totals("dropped")) == (2, {KEY: 0})


def test_a_cut_connection_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    given = batch(record(), record())
    given.broke = TOGETHER
    insert = CallQuerySet.insert

    def cut(self: CallQuerySet, rows: Any) -> None:
        connection.connection.close()
        insert(self, rows)

    with monkeypatch.context() as cutting:
        cutting.setattr(CallQuerySet, "insert", cut)
        with pytest.raises((OperationalError, InterfaceError, ProgrammingError)):
            write(given)
        connections.close_all()
    write(given)
    assert Call.objects.count() == 2
    assert totals("dropped") == {KEY: 0}


def test_a_refused_counter_takes_no_other_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raise_by = CallStatisticQuerySet.raise_by

    def refuse(self: CallStatisticQuerySet, rows: Any) -> None:
        if any("bad" in row for row in rows):
            raise TOO_WIDE
        raise_by(self, rows)

    monkeypatch.setattr(CallStatisticQuerySet, "raise_by", refuse)
    given = batch(record(name="bad"), record(), record())
    assert persistently(given) == 2
    assert totals() == {KEY: 2}
    assert Call.objects.count() == 3
    # By hour, and by minute.
    assert given.refused == RefusedBatch(0, 2, TOO_WIDE)
    only_counted = Tallies()
    only_counted.add_calls(0, ("default", "tool", "bad", "answered"), [1_000], 1)
    given = batch(tallies=only_counted)
    assert persistently(given) == 2
    assert given.refused.counters == 2


# -- once -----------------------------------------------------------------------------


def test_a_batch_that_is_written_again_is_written_once() -> None:
    given = batch(record(), record())
    for _ in range(3):
        write(given)
    write(batch(record(), writer=given.writer))
    write(given)
    assert Call.objects.count() == 3
    assert sum(totals().values()) == 3
    assert str(CallWriter.objects.get()).startswith(given.writer)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_that_breaks_neither_doubles_nor_loses(
    monkeypatch: pytest.MonkeyPatch, is_first: bool, happened: bool
) -> None:
    given = batch(record(), record())
    if not is_first:
        given.number += 1
        write(batch(writer=given.writer))
        CallWriter.objects.update(number=given.number - 1)
    break_commit(monkeypatch, happened)
    with pytest.raises(OperationalError):
        write(given)
    connections.close_all()
    assert Call.objects.count() == (2 if happened else 0)
    write(given)
    assert Call.objects.count() == 2
    assert sum(totals().values()) == 2


def test_who_gives_way_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    claim, times = CallWriterQuerySet.claim, []

    def deadlock(self: Any, writer: str, number: int) -> bool:
        claimed = claim(self, writer, number)
        times.append(claimed)
        if len(times) < writing.ATTEMPTS:
            raise OperationalError(1213, "Deadlock found when trying to get lock")
        return claimed

    monkeypatch.setattr(CallWriterQuerySet, "claim", deadlock)
    write(batch(record()))
    assert times == [True] * writing.ATTEMPTS
    assert Call.objects.count() == 1
    times.clear()
    monkeypatch.setattr(writing, "ATTEMPTS", 3)
    monkeypatch.setattr(CallWriterQuerySet, "claim", _deadlock)
    with pytest.raises(OperationalError):
        write(batch(record()))


def _deadlock(*_: object) -> bool:
    raise OperationalError(1213, "Deadlock found when trying to get lock")
