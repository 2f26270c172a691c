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
OF_LIMITS: Final = (10, 11, 12, 13, 14, 17, 19, 20, 21, 22, 28, 29, 31, 32)


def threats() -> dict[int, list[tuple[str, str]]]:
    return {int(number): NAMED.findall(row) for number, row in ROW.findall(TEXT)}


def named_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {
        each.name
        for each in tree.body
        if isinstance(each, functions) and each.name.startswith("test_")
    }


def test_each_threat_stands_once() -> None:
    assert [int(number) for number, _ in ROW.findall(TEXT)] == list(range(1, 35))


@pytest.mark.parametrize("number", threats())
def test_a_threat_names_tests_that_there_are(number: int) -> None:
    named = threats()[number]
    assert named
    for path, test in named:
        found = named_in(path)
        assert found
        assert not test or test in found, f"{path} has no {test}"


@pytest.mark.parametrize("number", OF_LIMITS)
def test_a_threat_has_a_test_that_is_named_after_it(number: int) -> None:
    after = f"test_t{number}_"
    assert [
        (path, test) for path, test in threats()[number]
        if after in path or test.startswith(after)
    ]  # fmt: skip


def test_tests_that_are_named_after_a_threat_stand_there() -> None:
    """A file that is named after one is in its row."""
    files = {
        f"tests/attacks/{each.name}": int(each.name[6:8])
        for each in (ROOT / "tests/attacks").glob("test_t[0-9][0-9]_*.py")
    }
    assert files
    for path, number in files.items():
        assert (path, "") in threats()[number]


def test_all_other_paths_are_there() -> None:
    for path in re.findall(r"`((?:tests|docs)/[\w/.]+)`", TEXT):
        assert (ROOT / path).exists()
