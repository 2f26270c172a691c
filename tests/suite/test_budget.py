"""What makes a room too dear; and that each room has its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.budget import TABLE, Budget, excesses, read
from tests.suite.records import TOP, Cost
from tests.suite.rooms import ROOT

BUDGETS = {"wire": Budget("wire", 10, 20.0)}


@pytest.mark.parametrize(
    ("cost", "yardstick"),
    [(Cost(30, 99, 10), 1.0), (Cost(15, 0, 10), 0.5), (Cost(60, 0, 0), 2.0)],
)
def test_enough(cost: Cost, yardstick: float) -> None:
    assert list(excesses(BUDGETS, {"wire": cost}, yardstick)) == []


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        (
            Cost(1, 1, 11),
            "wire started 11 programs; tests/budget.csv allows 10.",
        ),
        (
            Cost(34, 1, 0),
            "wire took 34 seconds; tests/budget.csv allows 1.5 times 20 and 3 more.",
        ),
    ],
)
def test_too_much(cost: Cost, sentence: str) -> None:
    assert list(excesses(BUDGETS, {"wire": cost}, 1.0)) == [sentence]


def test_seconds_are_those_of_the_yardstick() -> None:
    slow = list(excesses(BUDGETS, {"wire": Cost(34, 1, 0)}, 2.0))
    fast = list(excesses(BUDGETS, {"wire": Cost(29, 1, 0)}, 0.5))
    assert (len(slow), len(fast)) == (0, 1)


MANY = {name: Budget(name, 0, 20.0) for name in "abcdefghi"}


def _each(seconds: float, **others: float) -> dict[str, Cost]:
    return {name: Cost(others.get(name, seconds), 0, 0) for name in MANY}


def test_where_all_rooms_take_longer_it_is_the_machine() -> None:
    assert list(excesses(MANY, _each(39.0), 1.0)) == []
    assert list(excesses(MANY, _each(28.0, a=44.0), 1.0)) == []


def test_one_room_among_many_that_takes_longer() -> None:
    assert len(list(excesses(MANY, _each(20.0, a=34.0), 1.0))) == 1
    assert list(excesses(MANY, _each(28.0, a=47.0), 1.0)) == [
        "a took 47 seconds; tests/budget.csv allows 1.5 times 20 and 3 more,"
        " and 1.40 times that on this machine."
    ]
    assert len(list(excesses(MANY, _each(10.0, a=34.0), 1.0))) == 1


def test_no_machine_is_that_slow() -> None:
    assert len(list(excesses(MANY, _each(67.0), 1.0))) == len(MANY)


def test_few_rooms_say_nothing_of_the_machine() -> None:
    few = {name: cost for name, cost in _each(34.0).items() if name in "abc"}
    assert len(list(excesses(MANY, few, 1.0))) == len(few)


def test_a_room_without_a_line() -> None:
    assert list(excesses(BUDGETS, {"new": Cost()}, 1.0)) == [
        "new has no line in tests/budget.csv."
    ]


def test_a_small_room_may_take_some_seconds() -> None:
    budgets = {"kinds": Budget("kinds", 0, 0.4)}
    assert list(excesses(budgets, {"kinds": Cost(3.5, 1, 0)}, 1.0)) == []
    assert len(list(excesses(budgets, {"kinds": Cost(3.7, 1, 0)}, 1.0))) == 1


def test_the_table_has_each_room_once_and_no_other() -> None:
    tests = [
        each.relative_to(ROOT / "tests") for each in TABLE.parent.rglob("test_*.py")
    ]
    rooms = {path.parts[0] if len(path.parts) > 1 else TOP for path in tests}
    assert set(read(TABLE)) == rooms
    assert len(TABLE.read_text().splitlines()) == len(rooms) + 1


def test_there_and_back(tmp_path: Path) -> None:
    file = tmp_path / "budget.csv"
    file.write_text("room,programs,seconds\nwire,10,20\n")
    assert read(file) == BUDGETS


@pytest.mark.parametrize(
    "line", ["a,many,1", "a,1,soon", "a,1,nan", "a,1,inf", "a,-1,1", "a,1,-1", "a,1"]
)
def test_a_line_that_is_no_budget(tmp_path: Path, line: str) -> None:
    (tmp_path / "budget.csv").write_text(f"room,programs,seconds\n{line}\n")
    with pytest.raises(ValueError, match=r"budget.csv: .*'a'.* needs room, programs"):
        read(tmp_path / "budget.csv")
