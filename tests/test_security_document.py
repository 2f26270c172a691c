"""docs/security.md names, for each threat, tests that there are; and all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
TEXT: Final = (ROOT / "docs/security.md").read_text(encoding="utf-8")
ROW: Final = re.compile(r"^\| T(\d+) [^|]+ \|(.*)\|$", re.MULTILINE)
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
TESTED, _, WAITING = TEXT.partition("## Threats without tests")
OF_ACCESS: Final = {1, 2, 3, 4, 5, 8, 9, 18, 21, 25, 27, 33, 34}


def threats(text: str) -> dict[int, list[tuple[str, str]]]:
    return {int(number): NAMED.findall(row) for number, row in ROW.findall(text)}


def named_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {
        each.name
        for each in tree.body
        if isinstance(each, functions) and each.name.startswith("test_")
    }


def test_each_threat_stands_once() -> None:
    tested, waiting = threats(TESTED), threats(WAITING)
    assert sorted([*tested, *waiting]) == list(range(1, 35))
    assert set(tested) >= OF_ACCESS
    assert len(ROW.findall(TEXT)) == 34


@pytest.mark.parametrize("number", threats(TESTED))
def test_a_threat_names_tests_that_there_are(number: int) -> None:
    named = threats(TESTED)[number]
    assert named
    for path, test in named:
        found = named_in(path)
        assert found
        assert not test or test in found, f"{path} has no {test}"


def test_tests_that_are_named_after_a_threat_stand_there() -> None:
    """A file that is named after one is in its row."""
    files = {
        f"tests/attacks/{each.name}": int(each.name[6:8])
        for each in (ROOT / "tests/attacks").glob("test_t[0-9][0-9]_*.py")
    }
    assert files
    for path, number in files.items():
        assert (path, "") in threats(TESTED)[number]


def test_all_other_paths_are_there() -> None:
    for path in re.findall(r"`((?:tests|docs)/[\w/.]+)`", TEXT):
        assert (ROOT / path).exists()
