"""Building catalogs of what code declares and of what rows store."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.snapshot import Catalog
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.process.loading import load_catalogs

pytestmark = pytest.mark.django_db

CONTENT = '{"content": [{"type": "text", "text": "from a row"}]}'


@pytest.fixture
def registry() -> Registry:
    """Code that declares one of each."""
    made = Registry()

    @made.tool(tags=["shop"])
    async def declared_tool() -> str:
        return "from code"

    @made.resource("shop://list")
    async def declared_resource() -> str:
        return "from code"

    @made.resource("shop://item/{name}")
    async def declared_template(name: str) -> str:
        return name

    @made.prompt
    async def declared_prompt(word: str) -> str:
        return word

    @made.complete("declared_prompt", "word")
    async def complete_word(value: str) -> list[str]:
        return [value]

    return made


@pytest.fixture(autouse=True)
def _servers() -> None:
    Server.objects.all().delete()
    Server(slug="default", access="public").save()
    Server(slug="shop", access="public", selection="tags", tags="shop").save()
    Server(slug="off", enabled=False).save()


def rows() -> None:
    Tool(name="stored_tool", kind="text", config=CONTENT, tags="shop").save()
    Tool(name="stored_elsewhere", kind="text", config=CONTENT).save()
    Tool(name="switched_off", kind="text", config=CONTENT, enabled=False).save()
    Resource(name="r", uri="shop://stored", kind="text", config='{"text": "r"}').save()
    ResourceTemplate(
        name="t",
        uri_template="shop://stored/{id}",
        kind="text",
        config='{"text": "{{id}}"}',
    ).save()
    Prompt(
        name="stored_prompt",
        kind="text",
        config='{"messages": [{"role": "user", "content": {"type": "text",'
        ' "text": "p"}}]}',
    ).save()


def identities(catalog: Catalog) -> dict[str, set[str]]:
    return {
        "tools": set(catalog.tools),
        "resources": set(catalog.resources),
        "templates": set(catalog.templates),
        "prompts": set(catalog.prompts),
    }


def test_code_and_rows_side_by_side(registry: Registry) -> None:
    rows()
    catalogs = load_catalogs(registry)
    assert set(catalogs) == {"default", "shop"}
    assert identities(catalogs["default"]) == {
        "tools": {"declared_tool", "stored_tool", "stored_elsewhere"},
        "resources": {"shop://list", "shop://stored"},
        "templates": {"shop://item/{name}", "shop://stored/{id}"},
        "prompts": {"declared_prompt", "stored_prompt"},
    }
    assert identities(catalogs["shop"]) == {
        "tools": {"declared_tool", "stored_tool"},
        "resources": set(),
        "templates": set(),
        "prompts": set(),
    }


def test_a_row_never_hides_what_code_declares(registry: Registry) -> None:
    Tool.objects.bulk_create(
        [Tool(name="declared_tool", kind="text", config=CONTENT, tags="shop")]
    )
    tools = load_catalogs(registry)["default"].tools
    assert tools["declared_tool"].runnable.style == "async"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"kind": "unheard_of", "config": "{}"}, "there is no kind 'unheard_of'"),
        (
            {"kind": "function", "config": '{"function": "unheard.of"}'},
            "No function is registered as “unheard.of”",
        ),
    ],
)
def test_a_row_that_cannot_be_served_here(
    registry: Registry,
    columns: dict[str, Any],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Tool.objects.bulk_create([Tool(name="strange", **columns)])
    with caplog.at_level(logging.WARNING, "mcp_app.catalog"):
        catalogs = load_catalogs(registry)
    assert "strange" not in catalogs["default"].tools
    assert "declared_tool" in catalogs["default"].tools
    assert "is left out: " in caplog.text
    assert said in caplog.text
