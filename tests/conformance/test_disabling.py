"""What enforces a demand can be taken away, here and in processes of tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apart import ROOT
from tests.conformance.demands import guarded, read_rows
from tests.conformance.disabling import (
    VARIABLE,
    AnyGuard,
    Guard,
    GuardEntry,
    WrongGuardError,
    all_guards,
)

MOST_UNENFORCED = 29
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
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the above be as it was: what is disabled stays so."""
    fget: Any = Shop.open.fget  # type: ignore[attr-defined]
    for function in (tidy, later, several, Shop.closed, Shop.price, fget):
        monkeypatch.setattr(function, "__code__", function.__code__)


@pytest.mark.usefixtures("_restored")
async def test_what_stands_in_the_place_of_a_function() -> None:
    # Those who have imported it have the new one, too.
    Guard(tidy, returns="argument", demands=()).disable()
    assert (tidy(" a "), tidy(name=" b ")) == (" a ", " b ")
    Guard(Shop.closed, returns=True, demands=()).disable()
    assert Shop().closed("Monday")
    Guard(Shop.price, returns=None, demands=()).disable()
    assert Shop.price(3) is None
    Guard(Shop.open, returns=None, demands=()).disable()
    assert Shop().open is None
    Guard(later, returns=None, demands=()).disable()
    assert await later() is None
    Guard(several, returns=None, demands=()).disable()
    assert list(several()) == []


@pytest.mark.usefixtures("_restored")
def test_an_argument_of_a_method_is_not_the_object() -> None:
    Guard(Shop.closed, returns="argument", demands=()).disable()
    assert str(Shop().closed("Monday")) == "Monday"


def test_an_entry_is_removed() -> None:
    table = {"a": 1, "b": 2}
    GuardEntry(table, "a", demands=()).disable()
    assert table == {"b": 2}


def enclosing() -> Guard:
    name = "known from around it"

    def inner() -> str:
        return name

    return Guard(inner, returns=None, demands=())


@pytest.mark.parametrize(
    "guard",
    [
        Guard(len, returns=None, demands=()),
        Guard(Shop, returns=None, demands=()),
        enclosing(),
        Guard(several, returns=True, demands=()),
        Guard(later, returns="argument", demands=()),
        GuardEntry({"a": 1}, "c", demands=()),
    ],
)
def test_what_cannot_be_taken_away(guard: AnyGuard) -> None:
    with pytest.raises(WrongGuardError):
        guard.check()
    with pytest.raises(WrongGuardError):
        guard.disable()


def test_whatever_is_named_is_there() -> None:
    for guard in all_guards():
        guard.check()


def test_no_enforcement_was_lost() -> None:
    enforced = set(guarded())
    without = [
        row
        for row in read_rows()
        if row.binding and row.tests and row.id not in enforced
    ]
    assert len(without) == MOST_UNENFORCED, "Say the smaller number here."
    assert all(row.reason for row in without), "The table says why there is nothing."


def test_a_process_that_tests_start_is_without_it_too() -> None:
    """Each that has the drill's tables; the variable is inherited.

    The others do not import what is guarded.
    """
    program = (
        "import django, sys; django.setup();"
        "imported = 'tests.conformance.guards' in sys.modules;"
        "from mcp_app.server.handlers import HANDLERS;"
        "print('ping' in HANDLERS, imported)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"DJANGO_SETTINGS_MODULE": "tests.settings", **changes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for changes in ({}, {VARIABLE: "S-PING-001"})
    ]
    assert told == ["True False", "False True"]
