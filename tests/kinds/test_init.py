from __future__ import annotations

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds import KINDS, Problem, kinds_of, problems


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @registry.tool("find")
    def find() -> str:
        return ""

    @registry.resource("x:policy")
    def policy() -> str:
        return ""

    @registry.resource("x:orders/{id}")
    def order(id: str) -> str:
        return id

    @registry.prompt("write")
    def write() -> str:
        return ""

    return registry


@pytest.mark.parametrize(
    ("definition", "field", "value"),
    [
        (ToolDefinition(name="find"), "name", "find"),
        (ResourceDefinition(name="a", uri="x:policy"), "uri", "x:policy"),
        (
            ResourceTemplateDefinition(name="a", uri_template="x:orders/{id}"),
            "uri_template",
            "x:orders/{id}",
        ),
        (PromptDefinition(name="write"), "name", "write"),
    ],
)
def test_what_code_declares_cannot_be_made_again(
    registry: Registry, definition: Definition, field: str, value: str
) -> None:
    said = problems(definition, "text", {}, registry=registry)
    assert said[0] == Problem(
        field, f"“{value}” is declared in code already; choose another one."
    )
    assert len(said) == 2


def test_other_names_are_free(registry: Registry) -> None:
    definition = ToolDefinition(name="other")
    config = {"content": [{"type": "text", "text": "a"}]}
    assert problems(definition, "text", config, registry=registry) == []


def test_an_unknown_kind_is_told(registry: Registry) -> None:
    said = problems(ToolDefinition(name="a"), "http", {}, registry=registry)
    assert said == [Problem("kind", "There is no kind “http”.")]


def test_the_kinds_of_rows() -> None:
    assert set(KINDS) == {"function", "text"} == set(kinds_of(Registry()))
