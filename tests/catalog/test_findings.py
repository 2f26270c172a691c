from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from mcp_app import RegistrationError
from mcp_app.catalog.findings import (
    Level,
    Place,
    advice,
    collecting,
    count_text,
    must_fix,
    record_problem,
    worst_first,
)
from mcp_app.catalog.registry import Registry


def test_advice_is_what_remains_where_nothing_is_published() -> None:
    assert must_fix("kind", "config", "No.").as_advice() == advice(
        "kind", "config", "No."
    )


def test_the_worst_comes_first_and_the_rest_as_it_came() -> None:
    found = [
        advice("twice", "", "a"),
        must_fix("kind", "", "b"),
        advice("kind", "", ""),
    ]
    assert worst_first(found) == [found[1], found[0], found[2]]


def test_levels_have_their_words() -> None:
    assert [str(level.label) for level in Level] == [
        "Must be fixed before publishing",
        "Advice",
    ]


def test_numbers_are_written_as_the_language_has_them() -> None:
    with translation.override("de"):
        assert count_text(1200) == "1.200"


# -- problems --------------------------------------------------------------------------


TWICE = """
@mcp.tool
def add() -> int:
    return {number}
"""


def load(text: str, registry: Registry) -> None:
    """Run a module's body, as an import does."""
    names = {"mcp": registry, "__name__": "shop.mcp"}
    exec(compile(text, "/shop/mcp.py", "exec"), names)  # noqa: S102 - our own text


def several(*numbers: int) -> int:
    return sum(numbers)


def test_one_line_for_each() -> None:
    registry = Registry()
    record_problem(registry.problems, Place("mcp.py", 2), "It\n  does not fit. ")
    assert registry.problems == {"mcp.py:2: It does not fit.": Place("mcp.py", 2)}


def test_only_the_registry_that_collects() -> None:
    registry, other = Registry(), Registry()
    with collecting(registry.problems):
        assert registry.tool(several) is several
        with pytest.raises(RegistrationError):
            other.tool(several)
    with pytest.raises(RegistrationError):
        registry.tool(several)
    [sentence] = registry.problems
    assert sentence.startswith(f"{__file__}:")


def test_another_load_replaces() -> None:
    registry = Registry()
    for number in (1, 2):
        # The file was edited in between.
        load("\n" * number + TWICE.format(number=number), registry)
    registered: Any = registry.tools["add"].function
    assert registered.function() == 2


def test_one_function_twice() -> None:
    registry = Registry()
    load(TWICE.format(number=1) + "mcp.tool(add)", registry)
    assert [*registry.tools] == ["add"]
