"""Kinds as a site has them, usable ones and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_app import Context, PromptMessage, Text
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds import Kind
from mcp_app.protocol.json_types import JsonObject

SITES = ("harbour", "hill")


class Station(Kind):
    """For tools, whose form is its own, and for resources, whose config is JSON."""

    name = "Ask a weather station"
    examples = {
        ToolDefinition: "What a station measures: “Wind at the harbour”.",
        ResourceDefinition: "What a station is: “About the harbour”.",
    }
    schema = {
        "type": "object",
        "properties": {"station": {"type": "string"}},
        "required": ["station"],
    }
    forms = {ToolDefinition: "tests.kinds.station_forms.StationForm"}

    def check(
        self, definition: Definition, config: JsonObject, uploads: object
    ) -> Iterator[str]:
        if config["station"] not in SITES:
            yield f"There is no station “{config['station']}”."

    async def call(  # type: ignore[override]
        self,
        definition: Definition,
        config: JsonObject,
        arguments: JsonObject,
        context: Context,
    ) -> str:
        return f"{config['station']} for {context.client.name}: {arguments}"


class Everywhere(Kind):
    """For all definitions; its function blocks."""

    name = "Say what was asked"
    examples = dict.fromkeys(
        (
            ToolDefinition,
            ResourceDefinition,
            ResourceTemplateDefinition,
            PromptDefinition,
        ),
        "Anything.",
    )

    def call(
        self, definition: Definition, config: JsonObject, arguments: JsonObject
    ) -> Any:
        said = f"{definition.name} {config} {arguments}"
        if isinstance(definition, PromptDefinition):
            return [PromptMessage(Text(said))]
        return said


class Nameless(Kind):
    examples = {ToolDefinition: "A tool."}


class Formless(Station):
    forms = {ToolDefinition: "tests.kinds.no_such_module.Form"}


class Vague(Station):
    forms = {ToolDefinition: "tests.kinds.station_forms.NoSuchForm"}


class Failing(Station):
    """Is wrong itself."""

    def check(
        self, definition: Definition, config: JsonObject, uploads: object
    ) -> Iterator[str]:
        raise ZeroDivisionError("of the kind's own")
