"""Options of decorators: which names and values are taken, and what is said if not."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from django.utils.translation import gettext_lazy

from mcp_app.catalog.findings import check_options
from mcp_app.interface.errors import RegistrationError


class Options(TypedDict, total=False):
    title: str
    description: str
    instructions: str
    tags: list[str]
    groups: tuple[str, ...]
    timeout: float | None
    read_only: bool


def problem(**told: Any) -> str:
    """Return what is said of options, "" if they are taken."""
    try:
        check_options("shop.find", "tool", Options, told)
    except RegistrationError as error:
        return str(error).removeprefix("shop.find: ")
    return ""


def test_taken() -> None:
    assert problem() == ""
    assert problem(title="Find", tags=["a", "b"], groups=("Support",)) == ""
    assert {problem(timeout=each) for each in (None, 2.5, 3)} == {""}
    assert problem(title=gettext_lazy("Find"), description=gettext_lazy("F.")) == ""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"tags": "shop"}, "The option tags is 'shop': write a list."),
        ({"groups": "Support"}, "The option groups is 'Support': write a list."),
        ({"tags": ["a", 1]}, "The option tags is ['a', 1]: "),
        # Nothing is turned into another type.
        ({"read_only": 1}, "The option read_only is 1: "),
        ({"timeout": "3"}, "The option timeout is '3': "),
        # Only what is shown to people may be translated.
        ({"instructions": gettext_lazy("x")}, "The option instructions is "),
    ],
)
def test_another_type(told: dict[str, Any], said: str) -> None:
    assert problem(**told).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("readonly", "read_only, description, "),
        ("titel", "title, "),
        ("zzz", "title, description, instructions, tags, groups, timeout, read_only."),
    ],
)
def test_an_unknown_option(name: str, said: str) -> None:
    expected = f"@mcp.tool has no option {name!r}. It has {said}"
    assert problem(**{name: True}).startswith(expected)


def test_all_problems_are_named_together() -> None:
    said = problem(zzz=1, tags="shop", title="Find")
    assert said.startswith("@mcp.tool has no option 'zzz'. It has ")
    assert said.endswith(". The option tags is 'shop': write a list.")


def test_a_union_and_a_long_value_take_one_short_sentence() -> None:
    said = problem(timeout="9" * 500)
    assert said.count("The option timeout") == 1
    assert len(said) < 200
