"""What developers write wrong in an app's mcp.py is told at import."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypedDict

import pytest
from django.utils.translation import gettext_lazy

from mcp_app import RegistrationError
from mcp_app.catalog.registry import Registry


class Tree(TypedDict):
    children: list[Tree]


def plain() -> int:
    return 1


def takes_a_tree(tree: Tree) -> None: ...


WRONG_OPTIONS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"position": "first"}, "The option position is 'first'"),
    ({"position": True}, "The option position is True"),
    ({"icons": "https://example.com/i.png"}, "The option icons is .* write a list"),
    ({"icons": ["https://example.com/i.png"]}, "The option icons is"),
    ({"tags": "staff"}, "The option tags is 'staff': write a list"),
    ({"title": 5}, "The option title is 5"),
    ({"title": "\ud800"}, r"\$\.title has half of a surrogate pair"),
    ({"meta": {"a": object()}}, r"\$\._meta\.a is of type 'object'"),
    ({"meta": {"a": float("nan")}}, r"\$\._meta\.a is nan"),
    ({"permission": ["shop.view"]}, "The option permission is"),
    ({"timeout": "5"}, "The option timeout is '5'"),
    ({"timeout": float("nan")}, "The timeout is nan"),
    ({"timeout": float("inf")}, "The timeout is inf"),
    ({"read_only": "yes"}, "The option read_only is 'yes'"),
    ({"readonly": True}, "@mcp.tool has no option 'readonly'. It has read_only, "),
    ({"frobnicate": True}, "no option 'frobnicate'."),
]


@pytest.mark.parametrize(("options", "said"), WRONG_OPTIONS)
def test_wrong_options_of_a_tool(options: dict[str, Any], said: str) -> None:
    with pytest.raises(RegistrationError, match=said) as refused:
        Registry().tool(**options)(plain)
    assert "test_registration.plain: " in str(refused.value)


@pytest.mark.parametrize(
    "declare",
    [
        lambda registry, **wrong: registry.prompt(**wrong),
        lambda registry, **wrong: registry.resource("shop://a", **wrong),
        lambda registry, **wrong: registry.resource("shop://{a}", **wrong),
    ],
)
def test_the_other_decorators_look_as_well(declare: Callable[..., Any]) -> None:
    with pytest.raises(RegistrationError, match="The option position is 'first'"):
        declare(Registry(), position="first")(plain)


def test_texts_may_be_translated() -> None:
    registry = Registry()
    texts: Any = {"title": gettext_lazy("Yes"), "description": gettext_lazy("No")}
    registry.tool(**texts)(plain)
    assert str(registry.tools["plain"].definition.title) == "Yes"


@pytest.mark.parametrize("name", ["resource", "function"])
def test_decorators_need_their_brackets(name: str) -> None:
    with pytest.raises(RegistrationError, match=rf'as in @mcp\.{name}\("'):
        getattr(Registry(), name)(plain)


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """What ends while the stack is full would fail in any test's place."""
    gc.disable()
    yield
    gc.enable()


if sys.version_info < (3, 12):
    # A later Python has no such rule.
    @pytest.mark.usefixtures("_no_collection")
    def test_a_dict_that_contains_itself_needs_extensions() -> None:
        with pytest.raises(RegistrationError, match="from typing_extensions"):
            Registry().tool(takes_a_tree)
