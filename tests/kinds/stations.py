"""Kinds as a site has them, usable ones and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_app import Context, PromptMessage, Text
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds import Kind
from mcp_app.kinds.kind import AnyDefinition
from mcp_app.protocol.json_types import JsonObject

SITES = ("harbour", "hill")


def measures(station: str) -> JsonObject:
    """Return the input schema of a tool that asks a station."""
    measure = {"enum": ["wind", "rain"], "title": f"At the {station}"}
    return {"type": "object", "properties": {"measure": measure}}


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

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        if not isinstance(definition, ToolDefinition):
            return definition
        return replace(
            definition,
            input_schema=measures(config["station"]),
            hints=ToolHints(read_only=True),
            demands=definition.demands.combined_with(
                AccessRequirements(permissions=("sea.view",))
            ),
        )

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


class Unmade(Station):
    """Cannot be made."""

    def __init__(self, *arguments: Any) -> None:
        raise ZeroDivisionError


class Listed(Station):
    examples = [ToolDefinition]  # type: ignore[assignment]


class Schemaless(Station):
    schema = {"type": "objekt"}


class WithForms(Station):
    forms = {ToolDefinition: Station}  # type: ignore[dict-item]


class OfResources(Station):
    forms = {ToolDefinition: "mcp_app.admin.forms.ResourceForm"}


class Missed(Station):
    """Fails wherever it may."""

    def missing(self) -> Any:
        raise ZeroDivisionError

    def findings(self, *_: Any) -> Any:
        raise ZeroDivisionError


class Careless(Station):
    """Writes to what it is given, and says what is wrong in one text, or nothing."""

    forms = {}

    def check(self, definition: Definition, config: JsonObject, uploads: object) -> Any:
        config["seen"] = True
        return "It is the moon." if config["station"] == "moon" else None

    async def call(  # type: ignore[override]
        self, definition: Definition, config: JsonObject, arguments: JsonObject
    ) -> str:
        return str(config.pop("station"))


class Silent(Kind):
    """Answers nothing."""

    name = "Say nothing"
    examples = {ToolDefinition: "Nothing."}


class Renamed(Silent):
    def call(self, tool: Definition, config: JsonObject, given: JsonObject) -> str:
        return ""


class Open(Station):
    """Everybody who edits may change its configs."""

    guarded = False
