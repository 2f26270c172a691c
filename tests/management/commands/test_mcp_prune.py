from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, models

from mcp_app import models as tables
from mcp_app.models import expiry
from mcp_app.models.transactions import NowMilliseconds
from tests.audit.rows import call, counter
from tests.streams.logging_rows import opened
from tests.streams.test_retention import session

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

DAY_MS = 86_400_000


def pruned(*arguments: str) -> dict[str, int]:
    """Return the figures that are printed, by what they are of."""
    said = StringIO()
    call_command("mcp_prune", *arguments, stdout=said)
    title, *lines = said.getvalue().splitlines()
    assert title == ("Would be removed:" if arguments else "Removed:")
    assert len({len(line) for line in lines}) == 1, "The figures stand in a column."
    figures = [line.rsplit(maxsplit=1) for line in lines]
    return {what.strip(): int(rows.replace(",", "")) for what, rows in figures}


def write(age: int) -> None:
    then = NowMilliseconds() - age
    own = session()
    key = opened(own, b"1", b"2")
    tables.Stream.objects.filter(pk=key).update(state="completed", ended_ms=then)
    tables.Question.objects.create(session=own, rpc_id=uuid4().hex, created_ms=then)
    session(seen=age, created=age)
    tables.Once.objects.create(
        round_trip=uuid4().hex, key="k", result="1", created_ms=then
    )
    call(time_ms=then)
    tables.CallWriter.objects.create(id=uuid4().hex, number=1, written_ms=then)
    tables.Topic.objects.create(
        kind="uri", ref=uuid4().hex, version=age, changed_ms=then
    )
    tables.Worker.objects.create(
        id=uuid4().hex, host="h", pid=1, started_ms=then, seen_ms=then
    )


EACH = {
    "sessions",
    "questions",
    "streams",
    "steps",
    "calls",
    "writers of calls",
    "topics",
    "dead processes",
}
MODELS: list[type[models.Model]] = [
    tables.Session,
    tables.Question,
    tables.Stream,
    tables.Once,
    tables.Call,
    tables.CallWriter,
    tables.Topic,
    tables.Worker,
]


def rows() -> dict[str, int]:
    counts = {each.__name__: each._default_manager.count() for each in MODELS}
    # Sessions that go are changes, which become topics of their own.
    closed = tables.Topic.objects.filter(kind="session").count()
    return {**counts, "Topic": counts["Topic"] - closed}


@pytest.mark.parametrize("count", [1, 5])
def test_what_is_old_goes_and_the_rest_stays(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "PORTION", 2)
    write(0)
    before = rows()
    for number in range(count):
        write(40 * DAY_MS + number)
    # What is newer than the sessions that hold it.
    assert tables.Session.objects.count() == 2 + 2 * count
    would = pruned("--dry-run")
    figures = pruned()
    assert {what for what in EACH if figures[what] == count} == EACH
    assert figures["changes"] > 0
    assert {what: would[what] for what in EACH} == {
        what: figures[what] for what in EACH
    }
    # Of each round one session is new.
    assert rows() == {**before, "Session": before["Session"] + count}
    assert not any(pruned().values())


def test_a_dry_run_removes_nothing() -> None:
    write(40 * DAY_MS)
    tables.Change.objects.record("tool", "1")
    before, changes = rows(), tables.Change.objects.count()
    assert pruned("--dry-run")["changes"] == changes
    assert (rows(), tables.Change.objects.count()) == (before, changes)


def test_counters_by_the_minute_go_before_those_by_the_hour() -> None:
    for seconds in (60, 3_600):
        for age in (0, 3 * 3_600_000, 30 * DAY_MS, 800 * DAY_MS):
            counter(seconds, age)
    figures = pruned()
    assert figures["counters by the minute"] == 3
    assert figures["counters by the hour"] == 1
    left = tables.CallStatistic.objects.values_list("seconds", flat=True)
    assert sorted(left) == [60, 3_600, 3_600, 3_600]


def test_how_long_calls_are_kept_is_a_setting(settings: Any) -> None:
    call(time_ms=NowMilliseconds() - 2 * DAY_MS)
    settings.MCP = {"LIMITS": {"calls_kept": 3 * 86_400}}
    assert pruned()["calls"] == 0
    settings.MCP = {"LIMITS": {"calls_kept": 86_400}}
    assert pruned()["calls"] == 1


def test_an_outage_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Callable[[], int]:
        raise OperationalError("it is away")

    monkeypatch.setattr(expiry, "own_transaction", refuse)
    with pytest.raises(CommandError, match="The database refused: it is away"):
        call_command("mcp_prune", stdout=StringIO())
