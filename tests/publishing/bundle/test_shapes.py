"""What each member of a file may be."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.publishing.bundle import shapes
from mcp_app.publishing.bundle.shapes import Shape, members_of

HASH = "0123456789abcdef" * 4
FITTING: list[tuple[Shape, list[Any]]] = [
    (shapes.TEXT, ["", "a", "é\n"]),
    (shapes.KEY, ["a", " "]),
    (shapes.COUNT, [1, 10**20]),
    (shapes.HASHED, [HASH]),
    (shapes.NAMES, [[], ["a"], ["a", "b", "a"]]),
    (shapes.TIME, ["2026-11-18T14:00:00+01:00", "2026-11-18 14:00", "2026-11-18"]),
    (shapes.OBJECT, [{}, {"a": None}]),
    (shapes.LIST, [[], [None]]),
    (
        shapes.DEMANDED,
        [{}, {"permission": "shop.view"}, {"groups": "a\nb", "rule": ""}],
    ),
    (shapes.SOURCE, ["here", "code"]),
]
OTHERS: list[tuple[Shape, list[Any]]] = [
    (shapes.TEXT, ["a\0", None, 1, ["a"]]),
    (shapes.KEY, ["", "\0", None]),
    (shapes.COUNT, [0, -1, True, 1.0, "1", None]),
    (shapes.HASHED, [HASH.upper(), HASH[1:], f"{HASH}\n", f"{HASH}0", None, 7]),
    (shapes.NAMES, ["a", [""], ["a b"], ["a,b"], [" a"], ["a\0"], [1], {"a": 1}]),
    (shapes.TIME, ["18.11.2026", "2026-13-18T14:00", "now", "", 7, None]),
    (shapes.OBJECT, [[], "", None]),
    (shapes.LIST, [{}, (), "a", None]),
    (
        shapes.DEMANDED,
        [[], {"permissions": "a"}, {"rule": None}, {"rule": "a\0"}, {"groups": ["a"]}],
    ),
    (shapes.SOURCE, ["", "Here", "both", None]),
]


def cases(given: list[tuple[Shape, list[Any]]]) -> list[tuple[Shape, Any]]:
    return [*chain.from_iterable(((s, v) for v in values) for s, values in given)]


@pytest.mark.parametrize(("shape", "value"), cases(FITTING))
def test_it_fits(shape: Shape, value: Any) -> None:
    assert shape.fits(value)


@pytest.mark.parametrize(("shape", "value"), cases(OTHERS))
def test_it_does_not_fit(shape: Shape, value: Any) -> None:
    assert not shape.fits(value)
    assert str(shape.must).startswith("This must be ")


@pytest.mark.parametrize(
    ("model", "value", "required"),
    [
        (Server, {}, {"slug", "access", "page_size"}),
        (Tool, {}, {"name"}),
        (Prompt, [], {"name"}),
        (Resource, {"source": "here"}, {"uri"}),
        # What code declares is found by its name and its address.
        (Resource, {"source": "code"}, {"uri", "name"}),
        (ResourceTemplate, {"source": "code"}, {"uri_template", "name"}),
        (Tool, {"source": ["code"]}, {"name"}),
    ],
)
def test_what_an_entry_must_have(model: Any, value: Any, required: set[str]) -> None:
    must, may = members_of(model, value)
    assert must.keys() == required
    assert must.keys().isdisjoint(may)
    assert {"working", "published"} <= may.keys()
    assert ("source" in may) is (model is not Server)
    assert ("demands" in may) is (model is Server)
