"""Test functions are found, and compared with those of an older commit."""

from __future__ import annotations

from tests.suite.functions import Comparison, compare, functions, merged_tests
from tests.suite.rooms import ROOT

SOURCE = """
import pytest

def helper(): ...

def test_short(): ...

@pytest.mark.long
async def test_long(): ...

class TestThem:
    def test_inside(self): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.long)])
def test_with_a_long_case(n): ...
"""


def test_functions() -> None:
    assert functions({"tests/test_it.py": SOURCE}) == {
        "tests/test_it.py::test_short": False,
        "tests/test_it.py::test_long": True,
        "tests/test_it.py::TestThem::test_inside": False,
        "tests/test_it.py::test_with_a_long_case": False,
    }


def test_a_long_module() -> None:
    for mark in ("pytest.mark.long", "[pytest.mark.databases, pytest.mark.long]"):
        source = f"pytestmark = {mark}\ndef test_it(): ...\n"
        assert functions({"a.py": source}) == {"a.py::test_it": True}


def test_what_became_of_them() -> None:
    before = dict.fromkeys(
        ["a::same", "a::late", "b::moved", "c::gone", "d::into"], False
    )
    now = {"a::same": False, "a::late": True, "new::moved": False, "e::all": False}
    merged = {"d::into": "e::all", "c::gone": "e::none"}
    assert compare(before, now, {"b": "new"}, merged) == Comparison(
        test=["a::same", "b::moved"],
        test_all=["a::late"],
        merged=["d::into"],
        missing=["c::gone"],
    )


def test_what_took_others_in_is_there() -> None:
    for test, into in merged_tests().items():
        path, _, name = into.partition("::")
        source = (ROOT / path).read_text(encoding="utf-8")
        assert f"{path}::{name}" in functions({path: source}), test
