"""Which Pythons and Djangos go together, and how an environment differs."""

from __future__ import annotations

import sys

import pytest

from tests.suite import matrix
from tests.suite.matrix import DJANGOS, Cell, cells, interpreter, is_green, requirements
from tests.suite.rooms import ROOT

pytestmark = pytest.mark.long


def test_each_django_has_the_pythons_that_it_runs_on() -> None:
    assert cells(["3.11", "3.12"], DJANGOS) == [
        Cell("3.11", "5.2"),
        *(Cell("3.12", "5.2"), Cell("3.12", "6.0"), Cell("3.12", "6.1")),
    ]


def test_only_django_differs() -> None:
    pins = "channels==4.3.2\ndjango==5.2.19\ndjango-environ==0.14.0\n"
    assert requirements(pins, "6.1") == (
        "channels==4.3.2\ndjango~=6.1.0\ndjango-environ==0.14.0\n"
    )


def test_each_file_pins_django_as_it_is_looked_for() -> None:
    text = (ROOT / matrix.REQUIREMENTS[0]).read_text()
    assert "\ndjango~=6.0.0\n" in requirements(text, "6.0")


def test_our_own_python_is_on_this_machine() -> None:
    assert interpreter("{}.{}".format(*sys.version_info))


def test_a_python_that_is_not() -> None:
    assert interpreter("3.99") is None


@pytest.mark.parametrize(
    ("line", "green"),
    [
        ("9382 passed in 410.2s", True),
        ("1 failed, 9381 passed in 410.2s", False),
        ("9382 passed, 1 error in 410.2s", False),
        (matrix.FAILED_TO_INSTALL, False),
        ("", False),
    ],
)
def test_a_last_line(line: str, green: bool) -> None:
    assert is_green(line) is green
