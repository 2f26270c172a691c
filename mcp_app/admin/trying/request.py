"""The request that a page describes: its method, and its parameters from the form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from mcp_app.admin.trying.fields import (
    Field,
    Unreadable,
    fields_of,
    fill_in_fields,
    values_of,
)
from mcp_app.interface.definitions import (
    Definition,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.models.fields import parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import UriTemplate

PREFIX: Final = "argument-"
WAY: Final = "way"
JSON: Final = "json"
TEXT: Final = "arguments"
"""The input with all arguments as JSON."""


@dataclass(frozen=True, slots=True, repr=False)
class Arguments:
    """What the page asks for: fields, or a JSON object in `text`.

    `fields` is None if only JSON can express them; `error` is about `text`.
    """

    fields: Sequence[Field] | None
    text: str = ""
    by_json: bool = False
    error: str = ""

    @property
    def parsed_values(self) -> JsonObject:
        """The arguments; raises `Unreadable`, and ValueError for the text."""
        if not self.by_json:
            return values_of(self.fields or ())
        value = parse_json(self.text) if self.text.strip() else {}
        if not isinstance(value, dict):
            raise ValueError(_("The arguments must be a JSON object, such as {}."))
        return value


def arguments_of(definition: Definition, data: QueryDict | None = None) -> Arguments:
    """Return what is asked for, with what was typed if there is any."""
    fields = fields_of(schema_of(definition), PREFIX)
    if data is None:
        return Arguments(fields, _example_json(definition), by_json=fields is None)
    by_json = fields is None or data.get(WAY) == JSON
    text = data.get(TEXT, "").replace("\r\n", "\n")
    typed = None if fields is None else fill_in_fields(fields, data)
    return Arguments(typed, text, by_json)


def schema_of(definition: Definition) -> Mapping[str, Any]:
    """Return the JSON Schema of what a request of a definition is given."""
    if isinstance(definition, ToolDefinition):
        return definition.input_schema
    if isinstance(definition, PromptDefinition):
        return _text_schema([_argument_parts(each) for each in definition.arguments])
    if isinstance(definition, ResourceTemplateDefinition):
        template = UriTemplate.parse(definition.uri_template)
        needed = template.required_names
        return _text_schema([(name, "", name in needed) for name in template.variables])
    return {}


def _argument_parts(argument: PromptArgument) -> tuple[str, str, bool]:
    return argument.name, argument.description, argument.required


def _text_schema(parts: Sequence[tuple[str, str, bool]]) -> JsonObject:
    """Return a schema of texts: each has a name, a description, whether it must be."""
    return {
        "properties": {
            name: {"type": "string", "description": about} for name, about, _ in parts
        },
        "required": [name for name, _about, required in parts if required],
    }


def _example_json(definition: Definition) -> str:
    """Return an example of all arguments as JSON, "" if there is none."""
    if not isinstance(definition, ToolDefinition):
        return ""
    examples = definition.input_schema.get("examples")
    return (
        jsonrpc.pretty_text(examples[0])
        if isinstance(examples, list) and examples
        else ""
    )


def request_of(definition: Definition, values: JsonObject) -> tuple[str, JsonObject]:
    """Return the method and the parameters with these values; raises ValueError."""
    if isinstance(definition, ToolDefinition):
        return "tools/call", {"name": definition.name, "arguments": values}
    if isinstance(definition, PromptDefinition):
        return "prompts/get", {"name": definition.name, "arguments": values}
    return "resources/read", {"uri": _request_uri(definition, values)}


def _request_uri(definition: Definition, values: JsonObject) -> str:
    if isinstance(definition, ResourceDefinition):
        return definition.uri
    if not isinstance(definition, ResourceTemplateDefinition):
        raise TypeError(f"{type(definition).__name__} has no URI.")
    template = UriTemplate.parse(definition.uri_template)
    return template.expand({name: str(value) for name, value in values.items()})


def suggestion_of(
    definition: Definition, name: str, values: JsonObject
) -> tuple[str, JsonObject]:
    """Return the request for suggestions for an argument, from the others."""
    reference: JsonObject = {"type": "ref/prompt", "name": definition.name}
    if isinstance(definition, ResourceTemplateDefinition):
        reference = {"type": "ref/resource", "uri": definition.uri_template}
    others = {key: value for key, value in values.items() if key != name}
    argument = {"name": name, "value": str(values.get(name, ""))}
    return "completion/complete", {
        "ref": reference,
        "argument": argument,
        "context": {"arguments": others},
    }


def with_errors(arguments: Arguments, error: Exception) -> Arguments:
    """Return what was typed, with what is wrong with it."""
    if isinstance(error, Unreadable):
        return Arguments(error.fields, arguments.text, by_json=False)
    empty = [] if arguments.by_json else [*_empty_fields(arguments)]
    if empty:
        # Without them there is no address to ask for.
        message = _("This needs a value.")
        fields = [
            replace(each, error=message) if each in empty else each
            for each in arguments.fields or ()
        ]
        return Arguments(fields, arguments.text, by_json=False)
    return Arguments(
        arguments.fields, arguments.text, arguments.by_json, error=str(error)
    )


def _empty_fields(arguments: Arguments) -> Iterator[Field]:
    """Yield the fields that must have a value, and have none."""
    for each in arguments.fields or ():
        if each.required and not each.value:
            yield each
