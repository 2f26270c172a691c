"""What the list of calls is asked for: times, filters and places from an address."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import RequestFactory
from django.utils import timezone

from mcp_app.admin.calls import filters as asking
from mcp_app.admin.calls.filters import (
    CallFilter,
    milliseconds,
    read_filter,
    stored_time,
)
from mcp_app.interface.call_record import FAILED, Outcome
from mcp_app.models.call_rows import CallQuery, Key
from mcp_app.models.calls import HOUR_S, MINUTE_S

NOW = datetime(2026, 11, 18, 14, 37, 21, 500_000, UTC)
HOUR = timedelta(hours=1)
TOP = datetime(2026, 11, 18, 14, tzinfo=UTC)
BEGAN = TOP - 24 * HOUR


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(asking, "now", lambda: NOW)
    with timezone.override(UTC):
        yield


def of(**given: str) -> CallFilter:
    return read_filter(RequestFactory().get("/", given))


def between(begin: str = "", end: str = "") -> CallFilter:
    return of(when="between", **{"from": begin, "to": end})


# -- times -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "start", "seconds"),
    [
        ("", BEGAN, HOUR_S),
        ("day", BEGAN, HOUR_S),
        ("today", TOP - 14 * HOUR, HOUR_S),
        ("week", TOP - 7 * 24 * HOUR, HOUR_S),
        ("month", TOP - 30 * 24 * HOUR, HOUR_S),
        # The last hour is counted by the minute.
        ("hour", datetime(2026, 11, 18, 13, 37, tzinfo=UTC), MINUTE_S),
    ],
)
def test_a_time_from_the_list(when: str, start: datetime, seconds: int) -> None:
    found = of(when=when)
    assert (found.start, found.end, found.counter_seconds) == (start, None, seconds)
    assert found.end_ms is None
    assert stored_time(found.start_ms) == start


def test_yesterday_is_that_of_the_person() -> None:
    with timezone.override("Pacific/Kiritimati"):
        found = of(when="yesterday")
    assert (found.start, found.end) == (TOP - 28 * HOUR, TOP - 4 * HOUR)


@pytest.mark.parametrize(
    ("begin", "end", "start", "stop"),
    [
        # Begun hours count whole.
        ("2026-11-17T10:59", "2026-11-17T11:01", 10, 12),
        ("2026-11-17T10:00", "2026-11-17T11:00", 10, 11),
        ("2026-11-17T10:00", "2026-11-17T10:01", 10, 11),
        ("2026-11-17T10:00:00+01:00", "2026-11-17T11:00", 9, 11),
    ],
)
def test_a_time_of_ones_own(begin: str, end: str, start: int, stop: int) -> None:
    found = between(begin, end)
    day = datetime(2026, 11, 17, tzinfo=UTC)
    assert (found.start, found.end) == (day + start * HOUR, day + stop * HOUR)
    assert found.problems == ()
    assert found.given == {"from": begin, "to": end}
    assert found.end_ms == milliseconds(day + stop * HOUR)


def test_one_end_of_a_time() -> None:
    only_end = between(end="2026-11-10T10:00")
    assert only_end.start == datetime(2026, 11, 9, 10, tzinfo=UTC)
    only_start = between("2026-11-10T10:30")
    assert (only_start.start.hour, only_start.end) == (10, None)
    # What is no time is ignored.
    for neither in (between(), between("soon")):
        assert (neither.start, neither.end, neither.given) == (BEGAN, None, {})


# -- filters -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["server", "name", "user", "q"])
def test_texts(name: str) -> None:
    assert getattr(of(**{name: " a\0b "}), name) == "ab"
    assert len(getattr(of(**{name: "x" * 300}), name)) == asking.MAX_TEXT_LENGTH


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("5.7", Key(5, 7)),
        ("", None),
        ("5", None),
        ("5.7.", None),
        ("-5.7", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}.7", None),
        (f"{'9' * 18}.1", Key(10**18 - 1, 1)),
        (f"{'9' * 19}.1", None),
    ],
)
def test_a_place(text: str, key: Key | None) -> None:
    assert of(older=text).older == key
    assert of(newer=text).newer == key


@pytest.mark.parametrize(
    ("given", "counted"), [({}, True), ({"name": "a"}, True), ({"user": "a"}, False)]
)
def test_counters_know_no_person(given: dict[str, str], counted: bool) -> None:
    assert of(**given).is_countable is counted
    assert not of(q="a", **given).is_countable


OUTCOME = ("outcome", "=", "crashed")
NAME = ("name", "=", "add")
USER = ("user_name", "=", "ana")
SLOW = ("took_us", ">", 100_000)


@pytest.mark.parametrize(
    ("given", "ways", "rest"),
    [
        ({}, [], []),
        ({"name": "add"}, [NAME], []),
        ({"outcome": "crashed"}, [OUTCOME], []),
        # What is rarest leads.
        ({"outcome": "crashed", "name": "add"}, [OUTCOME], [NAME]),
        ({"outcome": "answered", "name": "add"}, [NAME], ["answered"]),
        # No index has what was answered: that is nearly all.
        ({"outcome": "answered"}, [], ["answered"]),
        ({"user": "ana", "name": "add"}, [USER], [NAME]),
        ({"user": "ana", "outcome": "crashed"}, [USER], ["crashed"]),
        ({"kind": "tool", "slower": "100"}, [], [("kind", "=", "tool"), SLOW]),
        ({"q": "ana"}, [USER, ("name", "=", "n1")], []),
        ({"q": "ana", "user": "kim"}, [USER, ("name", "=", "n1")], ["kim"]),
    ],
)
def test_which_rows_are_meant(
    given: dict[str, str], ways: list[Any], rest: list[Any]
) -> None:
    shown = {
        "answered": ("outcome", "IN", ("answered",)),
        "crashed": ("outcome", "IN", ("crashed",)),
        "kim": ("user_name", "=", "kim"),
    }
    rest = [shown[each] if isinstance(each, str) else each for each in rest]
    found = of(**given)
    assert found.call_query(("n1",)) == CallQuery(found.start_ms, None, ways, rest)


def test_any_failure_is_each_of_them() -> None:
    sought = of(outcome="any_failure").call_query()
    assert [*sought.ways] == [("outcome", "=", each) for each in FAILED]
    assert sought.conditions == []
    chosen = [one for some in asking.GROUPS.values() for one in some]
    assert (len(asking.GROUPS), sorted(chosen)) == (7, sorted(Outcome))


# -- addresses ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"when": "week", "outcome": "crashed", "name": "ä&b", "slower": "100"},
        {"when": "between", "from": "2026-11-17T10:00", "to": "2026-11-17T11:00"},
    ],
)
def test_an_address_asks_for_the_same(given: dict[str, str]) -> None:
    found = of(**given)
    assert read_filter(RequestFactory().get(f"/{found.query_string()}")) == found


def test_a_change_of_an_address_leaves_places_out() -> None:
    found = of(when="day", name="add", older="5.7")
    assert found.query_string() == "?name=add"
    assert found.query_string(name="", kind="tool") == "?kind=tool"
    assert found.query_string(newer=Key(3, 4)) == "?name=add&newer=3.4"
    assert of().query_string() == "?"
