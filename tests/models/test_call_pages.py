"""Pages of calls: in one order, without gaps, and never more than is looked at."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mcp_app.models import Call, call_rows
from mcp_app.models.call_rows import CallQuery, Key
from tests.audit.rows import call

pytestmark = pytest.mark.django_db

LOG = (
    # Several in one millisecond: the key decides.
    (1, "add", "answered"),
    (2, "add", "crashed"),
    (2, "find", "answered"),
    (2, "add", "tool_error"),
    (3, "find", "crashed"),
    (4, "add", "answered"),
)
CRASHED = ("outcome", "=", "crashed")
FAILED = ("outcome", "IN", ("crashed", "tool_error"))
ADD = ("name", "=", "add")


@pytest.fixture(autouse=True)
def _log() -> None:
    for time_ms, name, outcome in LOG:
        call(time_ms=time_ms, name=name, outcome=outcome)


def numbers(found: list[Call]) -> str:
    keys = [*Call.objects.order_by("pk").values_list("pk", flat=True)]
    return "".join(str(keys.index(each.pk)) for each in found)


def key(place: int) -> Key:
    row = Call.objects.order_by("pk")[place]
    return Key(row.time_ms, row.pk)


def page(sought: CallQuery | None = None, most: int = 99, **more: Any) -> str:
    return numbers(Call.objects.page(sought or CallQuery(0), most, **more))


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (CallQuery(0), "543210"),
        # The beginning is within, the end is not.
        (CallQuery(2), "54321"),
        (CallQuery(2, 4), "4321"),
        (CallQuery(2, 2), ""),
        (CallQuery(0, None, [ADD]), "5310"),
        (CallQuery(0, None, [CRASHED, ("outcome", "=", "tool_error")]), "431"),
        # A row that two ways lead to comes once.
        (CallQuery(0, None, [ADD, CRASHED]), "54310"),
        (CallQuery(0, None, [ADD], [FAILED]), "31"),
        (CallQuery(0, None, [], [FAILED, ADD]), "31"),
        (CallQuery(0, None, [], [("time_ms", ">", 3)]), "5"),
    ],
)
def test_what_is_sought(sought: CallQuery, found: str) -> None:
    assert page(sought) == found
    assert Call.objects.looked_for(sought).found == len(found)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("sought", [CallQuery(0), CallQuery(0, None, [ADD, CRASHED])])
def test_page_by_page_each_comes_once_either_way(sought: CallQuery, size: int) -> None:
    pages: list[str] = []
    older: Key | None = None
    while (found := Call.objects.page(sought, size, older=older)) and len(pages) < 7:
        pages.append(numbers(found))
        older = Key(found[-1].time_ms, found[-1].pk)
    assert "".join(pages) == page(sought)
    for newer, after in pairwise(pages):
        back = page(sought, size, newer=key(int(after[0])))
        assert back == newer
    assert Call.objects.looked_for(sought, older).found == 0


def test_older_and_newer_leave_out_the_place_itself() -> None:
    assert page(older=key(2)) == "10"
    assert page(newer=key(2)) == "543"
    # The next after it, not the newest.
    assert page(most=1, newer=key(2)) == "3"
    assert page(CallQuery(3), older=key(2)) == ""
    assert page(CallQuery(0, 3), newer=key(2)) == "3"


def test_it_is_said_how_far_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    rare = CallQuery(0, None, [], [("name", "=", "find")])
    assert Call.objects.looked_for(rare).back_to is None
    for module in ("call_rows", "calls"):
        monkeypatch.setattr(f"mcp_app.models.{module}.LOOKED", 4)
    assert page(rare) == "42"
    looked = Call.objects.looked_for(rare)
    # Of the millisecond before, some may have been looked at: it comes again whole.
    assert (looked.found, looked.back_to) == (2, Key(3, 0))
    rest = Call.objects.looked_for(rare, looked.back_to)
    assert (rest.found, rest.back_to) == (1, Key(2, 0))


def test_only_so_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_rows, "COUNTED", 4)
    assert Call.objects.looked_for(CallQuery(0)).found == 4
    # Everything was asked for, and an index has it: nothing is cut.
    assert Call.objects.looked_for(CallQuery(0)).back_to is None
