"""The fieldsets of definition forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.parameter_tables import summaries
from mcp_app.admin.editors.parameter_values import type_label
from mcp_app.catalog.callables import MISSING
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.catalog.type_hints import Annotation
from mcp_app.interface.definitions import Label, PromptDefinition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, complete_definition, usable_kinds
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from mcp_app.models.fields import DEMANDS
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts


# -- from code -------------------------------------------------------------------------
# The code of a registered function, for the read-only panel *From code*.


def declared_values(key: str, registry: Registry) -> Mapping[str, Any]:
    """Return what the panel shows of a function; `is_there` is False if it is gone."""
    function = registry.functions.get(key)
    if function is None:
        return {"key": visible(key), "is_there": False}
    return {"key": visible(key), "is_there": True, **values_of(function)}


def values_of(function: RegisteredFunction) -> Mapping[str, Any]:
    """Return what `mcp_app/widgets/function.html` shows of a function."""
    parameters = summaries(function.signature.input_schema)
    return {
        "description": visible(function.description, None),
        "parameters": [(each, type_label(each.type)) for each in parameters],
        "result": _result_type(function),
        "name": visible(function.qualified_name),
        "place": _source_location(function),
    }


def _result_type(function: RegisteredFunction) -> str:
    returned = function.inspected.returns
    return "" if returned is MISSING else _annotation(returned)


def _annotation(annotation: Annotation) -> str:
    if annotation is None or annotation is type(None):
        return "None"
    return visible(str(inspect.formatannotation(annotation)), None)


def _source_location(function: RegisteredFunction) -> str:
    """Return the file and line of a function; "" if it has no Python code."""
    innermost = inspect.unwrap(function.function)
    code = getattr(getattr(innermost, "__func__", innermost), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def own_schema(key: str, registry: Registry) -> str:
    """Return the input schema of a tool with an empty column as JSON; "" for none."""
    return _declared_json(
        Tool(name="a", kind="function", config=_function_config(key)), registry
    )


def own_arguments(key: str, registry: Registry) -> str:
    """Return the arguments of a prompt with an empty column as JSON; "" for none."""
    return _declared_json(
        Prompt(name="a", kind="function", config=_function_config(key)), registry
    )


def _function_config(key: str) -> str:
    return jsonrpc.write({"function": key}).decode()


def _declared_json(row: Tool | Prompt, registry: Registry) -> str:
    if row.json("config")["function"] not in registry.functions:
        return ""
    try:
        stored = complete_definition(stored_definition(row), usable_kinds(registry))
    except KindError:
        return ""
    definition = stored.definition
    if isinstance(definition, ToolDefinition):
        return jsonrpc.write(definition.input_schema).decode()
    if isinstance(definition, PromptDefinition) and definition.arguments:
        return jsonrpc.write(
            [_argument_members(each) for each in definition.arguments]
        ).decode()
    return ""


def _argument_members(argument: Any) -> Mapping[str, object]:
    members = {
        name: getattr(argument, name)
        for name in ("name", "title", "description", "required")
    }
    return {name: value for name, value in members.items() if value}


# -- fieldsets -------------------------------------------------------------------------

Fieldset: TypeAlias = "tuple[Label | None, _FieldOpts]"

WHO: Fieldset = (_("Who may use it"), {"fields": [*DEMANDS]})
CHANGES: Fieldset = (
    _("What it changes"),
    {
        "fields": ["changes"],
        "description": _("Clients show this to people before they agree to a call."),
    },
)
PARAMETERS: Fieldset = (
    _("Parameters"),
    {
        "fields": ["input_schema"],
        "description": _(
            "The arguments that a client can fill in. The model reads the names and"
            " descriptions."
        ),
    },
)
ARGUMENTS: Fieldset = (
    _("What the person fills in"),
    {
        "fields": ["arguments"],
        "description": _("In the messages, write {{name}} for the argument “name”."),
    },
)
VARIABLES: Fieldset = (
    _("Variables"),
    {
        "fields": ["suggestions"],
        "description": _(
            "The names in braces in the address pattern. Clients offer the"
            " suggestions while somebody fills in an address."
        ),
    },
)
FOR_WHOM: Fieldset = (
    _("For whom it is"),
    {
        "fields": ["audience", "importance"],
        "description": _("Clients may use this to choose what a model gets."),
    },
)
ADVICE: Mapping[type[DefinitionRow], Label] = {
    Tool: _("Put a parameter in double braces: Good morning, {{name}}."),
    Prompt: _(
        "Most prompts have one User message. Write the arguments in double braces:"
        " Write an answer to order {{order}}."
    ),
    Resource: _("Clients get the content unchanged."),
    ResourceTemplate: _(
        "Put a name of the address pattern in double braces: Order {{number}}."
    ),
}
TEXTS: Mapping[type[DefinitionRow], Label] = {
    Tool: _("What it does: answer with a text"),
    Prompt: _("Messages"),
    Resource: _("What it is: a text or a file"),
    ResourceTemplate: _("What it is: a text"),
}
BEYOND: Label = _(
    "The content is more than one text. It is kept exactly as it is; edit it as JSON."
)
BEYOND_PARTS: Label = _(
    "The answer is more than a text and a file. It is kept exactly as it is; edit it"
    " as JSON."
)
RUNS: Label = _("What it does: run a prepared function")
FUNCTION: Label = _(
    "You cannot choose another kind later. Make a new definition instead, and stop"
    " this one."
)


class Behind(NamedTuple):
    """The fields of a form that belong to the kind of its definition.

    `more` are fields to edit as JSON; `description` and `classes` are those of the
    fieldset. `without` are fields that nobody fills in, because they follow from it.
    """

    heading: Label
    fields: Sequence[str]
    description: Label = ""
    classes: Sequence[str] = ()
    more: Sequence[str] = ()
    without: Sequence[str] = ()

    @property
    def fieldset(self) -> Fieldset:
        return self.heading, {
            "fields": [*self.fields],
            "classes": self.classes,
            "description": self.description,
        }


def _text_fieldset(*fields: str) -> Fieldset:
    return _("What clients see"), {"fields": [*fields, "description"]}


def _where_fieldset(*fields: str) -> Fieldset:
    names = ("tags", "position", "timeout", *fields)
    return _("Where and how"), {
        "fields": (*names, "opened_version", "opened_fields", "kind")
    }


def _more_fieldset(*fields: str) -> Fieldset:
    return (
        _("More: JSON, icons, history"),
        {
            "classes": ["collapse"],
            "fields": [*fields, "icons", "created", "updated", "updated_by"],
        },
    )


def _tool_fieldsets(behind: Behind) -> list[Fieldset]:
    return [
        _text_fieldset("title", "name"),
        PARAMETERS,
        behind.fieldset,
        CHANGES,
        WHO,
        _where_fieldset("calls_per_minute"),
        _more_fieldset(*behind.more, "output_schema"),
    ]


def _resource_fieldsets(behind: Behind) -> list[Fieldset]:
    return [
        _text_fieldset("title", "name", "uri"),
        behind.fieldset,
        FOR_WHOM,
        WHO,
        _where_fieldset("ttl_ms", "public"),
        _more_fieldset(*behind.more, "annotations"),
    ]


def _template_fieldsets(behind: Behind) -> list[Fieldset]:
    return [
        _text_fieldset("title", "name", "uri_template"),
        VARIABLES,
        behind.fieldset,
        FOR_WHOM,
        WHO,
        _where_fieldset("ttl_ms", "public"),
        _more_fieldset(*behind.more, "annotations"),
    ]


def _prompt_fieldsets(behind: Behind) -> list[Fieldset]:
    return [
        _text_fieldset("title", "name"),
        ARGUMENTS,
        behind.fieldset,
        WHO,
        _where_fieldset(),
        _more_fieldset(*behind.more),
    ]


_FIELDSETS: Mapping[type[DefinitionRow], Callable[[Behind], list[Fieldset]]] = {
    Tool: _tool_fieldsets,
    Resource: _resource_fieldsets,
    ResourceTemplate: _template_fieldsets,
    Prompt: _prompt_fieldsets,
}


def fieldsets_of(model: type[DefinitionRow], behind: Behind) -> list[Fieldset]:
    """Return the fieldsets of a definition; `behind` comes from its form."""
    return [
        (heading, {**about, "fields": fields})
        for heading, about in _FIELDSETS[model](behind)
        if (fields := [each for each in about["fields"] if each not in behind.without])
    ]


def overlay_fieldsets(is_tool: bool) -> list[Fieldset]:
    """Return the fieldsets of a definition that code declares."""
    fieldsets: list[Fieldset] = [
        (_("From code"), {"fields": ["code"]}),
        (
            _("What clients see"),
            {
                "fields": ["title", "description"],
                "description": _(
                    "If a field is empty, the value from the code applies. This"
                    " also holds for the fields below."
                ),
            },
        ),
    ]
    if is_tool:
        fieldsets.append((_("What it changes"), {"fields": Tool.HINTS}))
    rate = ("calls_per_minute",) if is_tool else ()
    fields = (*DEMANDS, "timeout", *rate, "tags", "position")
    fieldsets.append(
        (
            _("Who may use it, where and how"),
            {"fields": (*fields, "opened_version", "opened_fields")},
        )
    )
    return fieldsets
