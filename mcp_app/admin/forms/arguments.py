"""The request that a page describes: its method, and its parameters from the form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.parameter_values import MISSING
from mcp_app.admin.editors.schema_fields import (
    Field,
    Unreadable,
    fields_of,
    fill_in_fields,
    values_of,
    with_value,
)
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.skills import file_uri
from mcp_app.protocol.uri_templates import UriTemplate

PREFIX: Final = "argument-"
WAY: Final = "way"
"""The input whose value JSON means that `TEXT` counts, and not the fields."""
JSON: Final = "json"
FILE: Final = "file"
TEXT: Final = "arguments"
"""The input with all arguments as JSON."""


@dataclass(frozen=True, slots=True, repr=False)
class Arguments:
    """The arguments on the page: fields, or a JSON object in `text`.

    `fields` is None if only JSON can express them; `error` is about `text`.
    """

    fields: Sequence[Field] | None
    text: str = ""
    by_json: bool = False
    error: str = ""

    @property
    def parsed_values(self) -> JsonObject:
        """The arguments; raises `Unreadable` for fields, ValueError for the text."""
        if not self.by_json:
            return values_of(self.fields or ())
        value = parse_json(self.text) if self.text.strip() else {}
        if not isinstance(value, dict):
            raise ValueError(_("The arguments must be a JSON object, such as {}."))
        return value


def arguments_of(
    definition: Definition, data: QueryDict | None = None, files: Sequence[str] = ()
) -> Arguments:
    """Return the arguments of a definition, filled in with the sent data, if any.

    `files` are the paths of a skill's files; the user may choose one.
    """
    schema = schema_of(definition)
    if files:
        choice = {"enum": [*files], "description": _("If none is chosen: SKILL.md.")}
        schema = {"properties": {FILE: choice}}
    fields = fields_of(schema, PREFIX)
    if data is None:
        examples, text = schema.get("examples"), ""
        if isinstance(examples, list) and examples:
            text = jsonrpc.pretty_text(examples[0])
        return Arguments(fields, text, by_json=fields is None)
    by_json = fields is None or data.get(WAY) == JSON
    text = lines_from_browser(data.get(TEXT))
    typed = None if fields is None else fill_in_fields(fields, data)
    return Arguments(typed, text, by_json)


def with_values(arguments: Arguments, values: JsonObject) -> Arguments:
    """Return the arguments filled in with values, as JSON if the fields cannot."""
    fields = [
        with_value(each, values.get(each.key, MISSING))
        for each in arguments.fields or ()
    ]
    filled = Arguments(fields, jsonrpc.pretty_text(values))
    with suppress(Unreadable):
        if arguments.fields is not None and filled.parsed_values == values:
            return filled
    return replace(filled, fields=arguments.fields, by_json=True)


def schema_of(definition: Definition) -> Mapping[str, Any]:
    """Return the JSON Schema of the arguments of a definition."""
    if isinstance(definition, ToolDefinition | EventDefinition):
        return definition.input_schema
    if isinstance(definition, PromptDefinition):
        arguments = definition.arguments
        return {
            "properties": {
                argument.name: {"type": "string", "description": argument.description}
                for argument in arguments
            },
            "required": [argument.name for argument in arguments if argument.required],
        }
    if isinstance(definition, ResourceTemplateDefinition):
        template = UriTemplate.parse(definition.uri_template)
        return {
            "properties": {name: {"type": "string"} for name in template.variables},
            "required": [*template.required_names],
        }
    return {}


def request_of(definition: Definition, values: JsonObject) -> tuple[str, JsonObject]:
    """Return the method and parameters of a request; raises ValueError."""
    if isinstance(definition, ToolDefinition):
        return "tools/call", {"name": definition.name, "arguments": values}
    if isinstance(definition, PromptDefinition):
        return "prompts/get", {"name": definition.name, "arguments": values}
    if isinstance(definition, EventDefinition):
        return "events/poll", {"name": definition.name, "arguments": values}
    if isinstance(definition, ResourceDefinition):
        root = definition.uri.rpartition("/")[0]
        uri = file_uri(root, str(values[FILE])) if FILE in values else definition.uri
        return "resources/read", {"uri": uri}
    if not isinstance(definition, ResourceTemplateDefinition):
        raise TypeError(f"{type(definition).__name__} has no URI.")
    template = UriTemplate.parse(definition.uri_template)
    texts = {name: str(value) for name, value in values.items()}
    return "resources/read", {"uri": template.expand(texts)}


def with_errors(arguments: Arguments, error: Exception) -> Arguments:
    """Return the typed arguments with error messages."""
    if isinstance(error, Unreadable):
        return Arguments(error.fields, arguments.text, by_json=False)
    message = _("This needs a value.")
    fields = [
        replace(each, error=message) if each.required and not each.value else each
        for each in arguments.fields or ()
    ]
    if not arguments.by_json and any(field.error for field in fields):
        # Empty fields are the reason, such as variables that a URI needs.
        return Arguments(fields, arguments.text, by_json=False)
    return replace(arguments, error=str(error))
