"""What enforces a demand can be taken away, and then a test that names it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from tests.coverage_table import ROOT, Row, read_rows
from tests.disabling import (
    WrongEnforcementError,
    chosen,
    disable,
    enforced,
    failed,
    found,
)

SEED = 20260743
QUICK = (
    "L-BASE-035",
    "L-CACHE-004",
    "L-ELICIT-023",
    "L-HEAD-014",
    "L-MRTR-037",
    "L-RES-025",
    "L-SAMPLE-015",
    "S-ELICIT-001",
    "S-HTTP-003",
    "S-STDIO-006",
)
"""Rows whose tests take no time, and what enforces them stands in different modules."""

MOST_UNENFORCED = 22
"""MUSTs that tests show and of which nothing says what enforces them: may shrink."""


class Shop:
    def closed(self, day: str) -> bool:
        return day == "Sunday"

    @staticmethod
    def price(kilograms: int) -> int:
        return kilograms * 2

    @property
    def open(self) -> bool:
        return True


def tidy(name: str) -> str:
    return name.strip()


async def later() -> str:
    return "later"


def several() -> Iterator[int]:
    yield 1


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with copies of the above: what is disabled stays so."""
    made = ModuleType("made_up")
    source = {"Shop": Shop, "tidy": tidy, "later": later, "several": several}
    made.__dict__.update(source, TABLE={"a": 1, "b": 2}, NUMBER=1)
    monkeypatch.setitem(sys.modules, "made_up", made)
    kept = [tidy, later, several, Shop.closed, Shop.price]
    for function in kept:
        monkeypatch.setattr(function, "__code__", function.__code__)
    fget: Any = Shop.open.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(fget, "__code__", fget.__code__)
    return made


async def test_what_stands_in_the_place_of_a_function(module: ModuleType) -> None:
    # Those who have imported it have the new one, too.
    disable("made_up:tidy returns argument")
    assert (tidy(" a "), tidy(name=" b ")) == (" a ", " b ")
    disable("made_up:Shop.closed returns True")
    assert Shop().closed("Monday")
    disable("made_up:Shop.price returns None")
    assert Shop.price(3) is None
    disable("made_up:Shop.open returns None")
    assert Shop().open is None
    disable("made_up:later returns None")
    assert await later() is None
    disable("made_up:several returns None")
    assert list(several()) == []


def test_an_argument_of_a_method_is_not_the_object(module: ModuleType) -> None:
    disable("made_up:Shop.closed returns argument")
    assert str(Shop().closed("Monday")) == "Monday"


def test_an_entry_is_removed(module: ModuleType) -> None:
    disable("made_up:TABLE[a] removed")
    assert module.TABLE == {"b": 2}


@pytest.mark.parametrize(
    "enforced_by",
    [
        "tidy",
        "made_up:tidy",
        "made_up:tidy returns 5",
        "made_up:gone returns None",
        "made_up:NUMBER returns None",
        "made_up:TABLE[c] removed",
        "made_up:NUMBER[c] removed",
    ],
)
def test_what_cannot_be_taken_away(module: ModuleType, enforced_by: str) -> None:
    with pytest.raises(WrongEnforcementError):
        found(enforced_by)


def test_whatever_is_named_is_there() -> None:
    rows = [row for row in read_rows() if row.enforced_by]
    for row in rows:
        found(row.enforced_by)
    assert all(row.tests for row in rows)


def test_no_enforcement_was_lost() -> None:
    without = [
        row for row in read_rows() if row.binding and row.tests and not row.enforced_by
    ]
    assert len(without) == MOST_UNENFORCED, "Say the smaller number here."
    assert all(row.reason for row in without), "The table says why there is nothing."


def test_different_enforcements_are_chosen_first() -> None:
    rows = [
        Row(
            id=f"A-{number}", strength="MUST", document="a", tests="t", enforced_by=cell
        )
        for number, cell in enumerate(["a", "a", "a", "b"])
    ]
    assert {row.enforced_by for row in chosen(rows, SEED, 2)} == {"a", "b"}
    assert len(chosen(rows, SEED, 9)) == 4
    assert chosen(rows, SEED, 3) == chosen(rows, SEED, 3)


def test_a_named_test_fails_without_what_enforces_it() -> None:
    tried = [row for row in enforced(read_rows()) if row.id in QUICK]
    assert len({row.enforced_by.partition(":")[0] for row in tried}) == len(QUICK)
    # What takes its time is to begin: two of them at once.
    with ThreadPoolExecutor(2) as pool:
        green = [
            f"{row.id}: nothing fails without {row.enforced_by}"
            for row, test in zip(tried, pool.map(failed, tried), strict=True)
            if not test
        ]
    assert green == []


def test_a_process_that_tests_start_is_without_it_too() -> None:
    """Each that has the drill's tables; the variable is inherited."""
    program = (
        "import django; django.setup();"
        "from mcp_app.server.handlers import HANDLERS; print('ping' in HANDLERS)"
    )
    (row,) = (each for each in read_rows() if each.id == "S-PING-001")
    assert row.enforced_by.endswith("HANDLERS[ping] removed")
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"DJANGO_SETTINGS_MODULE": "tests.settings", **changes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for changes in ({}, {"MCP_TEST_DISABLE": row.id})
    ]
    assert told == ["True", "False"]
