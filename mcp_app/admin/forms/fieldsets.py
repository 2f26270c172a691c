"""The fieldsets of definition forms."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.parameter_forms import summaries
from mcp_app.catalog.callables import MISSING
from mcp_app.catalog.event_types import DeclaredEvent
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.interface.definitions import Label, PromptDefinition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, complete_definition, usable_kinds
from mcp_app.kinds.survey import Declared
from mcp_app.models import (
    DefinitionRow,
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcp_app.models.fields import DEMANDS, split_lines
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.apps import is_app

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts


# -- from code -------------------------------------------------------------------------
# The code of a registered function, for the read-only panel *From code*.


def declared_values(key: str, registry: Registry) -> Mapping[str, Any]:
    """Return the panel's context; `is_there` is False if the function is gone."""
    function = registry.functions.get(key)
    values = {} if function is None else values_of(function)
    return {"key": visible(key), "is_there": function is not None, **values}


def values_of(function: RegisteredFunction) -> Mapping[str, Any]:
    """Return the context of `mcp_app/widgets/function.html` about a function."""
    returned = function.inspected.returns
    returned = None if returned is type(None) else returned
    result = "" if returned is MISSING else str(inspect.formatannotation(returned))
    innermost = inspect.unwrap(function.function)
    # Functions written in C have no code object.
    code = getattr(getattr(innermost, "__func__", innermost), "__code__", None)
    return {
        "description": visible(function.description, None),
        "parameters": summaries(function.signature.input_schema),
        "result": visible(result, None),
        "name": visible(function.qualified_name),
        "place": f"{code.co_filename}:{code.co_firstlineno}" if code else "",
    }


def values_of_declaration(declared: Declared) -> Mapping[str, Any]:
    """Return the context of the function page for code, even without a function."""
    if isinstance(declared, DeclaredEvent):
        return {
            "description": visible(declared.definition.description, None),
            "told": summaries(declared.definition.payload_schema),
            "name": visible(declared.qualified_name),
        }
    function, definition = declared.function, declared.definition
    if isinstance(function, RegisteredFunction):
        values = {**values_of(function)}
        if is_app(getattr(definition, "mime_type", "")):
            # Show the place of the declaration: the function may be ours.
            values["place"] = str(mcp.origins["resource", definition.uri].place)
        return values
    return {
        "description": visible(definition.description, None),
        "parameters": summaries(getattr(definition, "input_schema", {})),
        "name": visible(f"{function.qualified_name} {function.request}".strip()),
        "place": str(function.place),
    }


def own_json(model: type[Tool | Prompt], key: str, registry: Registry) -> str:
    """Return the JSON that an empty column stands for, from the function; "" for none.

    It is the input schema of a tool, or the arguments of a prompt.
    """
    if key not in registry.functions:
        return ""
    config = jsonrpc.write({"function": key}).decode()
    # A definition needs a name, but this one is only read.
    row = stored_definition(model(name="a", kind="function", config=config))
    try:
        definition = complete_definition(row, usable_kinds(registry)).definition
    except KindError:
        return ""
    value: object = None
    if isinstance(definition, ToolDefinition):
        value = definition.input_schema
    elif isinstance(definition, PromptDefinition):
        names = ("name", "title", "description", "required")
        value = [
            {name: value for name in names if (value := getattr(argument, name))}
            for argument in definition.arguments
        ]
    return jsonrpc.write(value).decode() if value else ""


# -- fieldsets -------------------------------------------------------------------------

Fieldset: TypeAlias = "tuple[Label | None, _FieldOpts]"


def _fieldset(name: Label, fields: Sequence[str], advice: Label) -> Fieldset:
    return name, {"fields": [*fields], "description": advice}


CHANGES = _fieldset(
    _("What it changes"),
    ["changes"],
    _("Clients show this to people before they agree to a call."),
)
PARAMETERS = _fieldset(
    _("Parameters"),
    ["input_schema"],
    _(
        "The arguments that a client can fill in. The model reads the names and"
        " descriptions."
    ),
)
ARGUMENTS = _fieldset(
    _("What the person fills in"),
    ["arguments"],
    _("In the messages, write {{name}} for the argument “name”."),
)
VARIABLES = _fieldset(
    _("Variables"),
    ["suggestions"],
    _(
        "The names in braces in the address pattern. Clients offer the suggestions"
        " while somebody fills in an address."
    ),
)
FOR_WHOM = _fieldset(
    _("For whom it is"),
    ["audience", "importance"],
    _("Clients may use this to choose what a model gets."),
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

    `more` are fields to edit as JSON. `description` and `classes` belong to the
    fieldset. `without` are hidden fields, whose values follow from the kind's fields.
    `who` says which people the kind itself requires. `folded` are folded fieldsets of
    one field: the heading, and a text about the content.
    """

    heading: Label
    fields: Sequence[str]
    description: Label = ""
    classes: Sequence[str] = ()
    more: Sequence[str] = ()
    without: Sequence[str] = ()
    who: Label = ""
    folded: Mapping[str, tuple[Label, Label]] = {}

    @property
    def fieldset(self) -> Fieldset:
        return self.heading, {
            "fields": [*self.fields],
            "classes": self.classes,
            "description": self.description,
        }


OPENED = ("opened_version", "opened_fields")
HISTORY = ("created_at", "updated_at", "updated_by")
_FIELDSETS: Mapping[
    type[DefinitionRow],
    tuple[Sequence[str], Sequence[Fieldset | None], Sequence[str], Sequence[str]],
] = {
    Tool: ((), (None, PARAMETERS, CHANGES), Tool.CALLS, ("output_schema",)),
    Resource: (("uri",), (None, FOR_WHOM), ("ttl_ms", "public"), ("annotations",)),
    ResourceTemplate: (
        ("uri_template",),
        (None, VARIABLES, FOR_WHOM),
        ("ttl_ms", "public"),
        ("annotations",),
    ),
    Prompt: ((), (ARGUMENTS, None), (), ()),
    EventType: ((), (None,), (), ()),
}
"""Texts beside the title, fieldsets (None: the kind's), limits, fields of *More*."""


def fieldsets_of(
    model: type[DefinitionRow], behind: Behind, row: DefinitionRow | None = None
) -> list[Fieldset]:
    """Return the fieldsets of a definition; `behind` comes from its form.

    The fields of the kind come first. The heading of a folded fieldset tells the values
    of `row`, which is None for a new one.
    """
    texts, middle, limits, json_fields = _FIELDSETS[model]
    icons = [name for name in ("icons",) if name in model.CONTENT]
    fieldsets: list[Fieldset] = [
        *(
            behind.fieldset if each is None else each
            for each in middle
            if each is None or behind.folded.keys().isdisjoint(each[1]["fields"])
        ),
        (_("What clients read"), {"fields": ("title", *texts, "description")}),
        *(_fold(*words, [field]) for field, words in behind.folded.items()),
        _fold(_("Who may use it"), _who_words(behind, row), model.WHO),
        _fold(
            _("Tags, limits") if "name" in behind.fields else _("Name, tags, limits"),
            _limits_words(row, has_name="name" not in behind.fields),
            ("name", "tags", "position", "timeout", *limits, *OPENED, "kind"),
        ),
        _fold(
            _("More"),
            _("JSON, icons, history") if icons else _("JSON, history"),
            (*behind.more, *json_fields, *icons, *HISTORY),
        ),
    ]
    seen = {*behind.without}
    shown: list[Fieldset] = []
    for heading, about in fieldsets:
        # If the kind's fieldset has a field, do not show it again below.
        if fields := [each for each in about["fields"] if each not in seen]:
            shown.append((heading, {**about, "fields": fields}))
            seen.update(map(str, fields))
    return shown


def _fold(name: Label, inside: Label, fields: Sequence[str]) -> Fieldset:
    text = '{} <span class="mcp-quiet">\N{EN DASH} {}</span>'
    heading = format_html(text, name, visible(str(inside), None))
    return heading, {"classes": ["collapse", "mcp-fold"], "fields": [*fields]}


def _who_words(behind: Behind, row: DefinitionRow | None) -> Label:
    permission = "" if row is None else row.permission
    names = "" if row is None else ", ".join(split_lines(row.groups))
    rule = "" if row is None else row.rule
    words = [str(each) for each in (behind.who, permission, names, rule) if each]
    words = words or [str(_("everyone who may use the server"))]
    if getattr(row, "approval", ""):
        words.append(str(_("somebody must agree first")))
    return ", ".join(words)


def _limits_words(row: DefinitionRow | None, *, has_name: bool = True) -> Label:
    if row is None and not has_name:
        return _("no tags, the site's limits")
    if row is None:
        return _("name as drafted, no tags, the site's limits")
    limits = getattr(row, "calls_per_minute", None) or row.timeout
    kept = getattr(row, "keeps_values", False)
    return ", ".join(
        (
            row.name,
            row.tags or str(_("no tags")),
            str(_("its own limits") if limits else _("the site's limits")),
            *([str(_("values of calls are kept"))] if kept else []),
        )
    )


def overlay_fieldsets(is_tool: bool) -> list[Fieldset]:
    """Return the fieldsets of a definition that code declares."""
    fieldsets: list[Fieldset] = [
        (_("From code"), {"fields": ["code"]}),
        _fieldset(
            _("What clients see"),
            ["title", "description"],
            _(
                "If a field is empty, the value from the code applies. This also holds"
                " for the fields below."
            ),
        ),
    ]
    if is_tool:
        fieldsets.append((_("What it changes"), {"fields": Tool.HINTS}))
    who, calls = (Tool.WHO, Tool.CALLS) if is_tool else (DEMANDS, ())
    fields = (*who, "timeout", *calls, "tags", "position")
    heading = _("Who may use it, where and how")
    return [*fieldsets, (heading, {"fields": (*fields, *OPENED)})]
