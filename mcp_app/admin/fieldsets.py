"""Which fields the form of a definition has, kind by kind, and under which heading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.wording import Said
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from mcp_app.models.demands import DEMANDS

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts

Fieldset: TypeAlias = "tuple[Said | None, _FieldOpts]"

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
            "What a client can fill in. The model reads the names and descriptions."
        ),
    },
)
ARGUMENTS: Fieldset = (
    _("What the person fills in"),
    {
        "fields": ["arguments"],
        "description": _("Each argument stands in the messages as {{name}}."),
    },
)
VARIABLES: Fieldset = (
    _("Variables"),
    {
        "fields": ["suggestions"],
        "description": _(
            "The names in braces in the address pattern. Clients offer what is "
            "suggested while somebody fills in an address."
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
ADVICE: Mapping[type[DefinitionRow], Said] = {
    Tool: _("Put a parameter in double braces: Good morning, {{name}}."),
    Prompt: _(
        "Most prompts are one User message. Put what people fill in into the text in "
        "double braces: Write an answer to order {{order}}."
    ),
    Resource: _("Clients read it as it is."),
    ResourceTemplate: _(
        "Put a name of the address pattern in double braces: Order {{number}}."
    ),
}
TEXTS: Mapping[type[DefinitionRow], Said] = {
    Tool: _("What it does: answer with a text"),
    Prompt: _("Messages"),
    Resource: _("What it is: a text or a file"),
    ResourceTemplate: _("What it is: a text"),
}
BEYOND: Said = _(
    "The content says more than one text. It is kept exactly as it is; edit it as JSON."
)
BEYOND_PARTS: Said = _(
    "The answer says more than a text and a file. It is kept exactly as it is; edit it "
    "as JSON."
)
RUNS: Said = _("What it does: run a prepared function")
FUNCTION: Said = _(
    "To change what stands behind it, make a new one and switch this one off."
)


def _texts(*fields: str) -> Fieldset:
    return _("What clients see"), {"fields": [*fields, "description"]}


def _behind(model: type[DefinitionRow], kind: str, *fields: str) -> Fieldset:
    """Return the heading that says what stands behind it, and what that needs."""
    if kind == "function":
        return RUNS, {
            "fields": ["function", "from_code", *fields],
            "description": FUNCTION,
        }
    # The preview stands beside the messages, where there is room.
    classes = ["mcp-two"] if model is Prompt else []
    return TEXTS[model], {
        "fields": fields,
        "classes": classes,
        "description": ADVICE[model],
    }


def _where(*fields: str) -> Fieldset:
    names = ("tags", "position", "timeout", *fields)
    return _("Where and how"), {
        "fields": (*names, "opened_version", "opened_fields", "kind")
    }


def _more(*fields: str) -> Fieldset:
    return (
        _("More: JSON, icons, history"),
        {
            "classes": ["collapse"],
            "fields": [*fields, "icons", "created", "updated", "updated_by"],
        },
    )


def _rich_tool() -> Fieldset:
    """Return the place of an answer that is edited as JSON."""
    return TEXTS[Tool], {"fields": ["config"], "description": BEYOND_PARTS}


def _as_json(kind: str, rich: bool) -> Sequence[str]:
    return ("config",) if kind == "text" and not rich else ()


def _tool(kind: str, rich: bool) -> list[Fieldset]:
    fields = ("text", "file") if kind == "text" else ()
    return [
        _texts("title", "name"),
        PARAMETERS,
        _rich_tool() if rich else _behind(Tool, kind, *fields),
        CHANGES,
        WHO,
        _where(),
        _more(*_as_json(kind, rich), "output_schema"),
    ]


def _resource(kind: str, rich: bool) -> list[Fieldset]:
    text = ("text", "upload", "mime_type", "now")
    fields = text if kind == "text" else ("mime_type",)
    behind = _behind(Resource, kind, *fields)
    if rich:
        behind = (
            TEXTS[Resource],
            {
                "fields": ["config", "upload", "mime_type", "now"],
                "description": BEYOND,
            },
        )
    return [
        _texts("title", "name", "uri"),
        behind,
        FOR_WHOM,
        WHO,
        _where("ttl_ms", "public"),
        _more(*_as_json(kind, rich), "annotations"),
    ]


def _template(kind: str, rich: bool) -> list[Fieldset]:
    fields = ("text", "mime_type") if kind == "text" else ("mime_type",)
    return [
        _texts("title", "name", "uri_template"),
        VARIABLES,
        _behind(ResourceTemplate, kind, *fields),
        FOR_WHOM,
        WHO,
        _where("ttl_ms", "public"),
        _more(*_as_json(kind, rich), "annotations"),
    ]


def _prompt(kind: str, rich: bool) -> list[Fieldset]:
    fields = ("config", "preview") if kind == "text" else ()
    return [
        _texts("title", "name"),
        ARGUMENTS,
        _behind(Prompt, kind, *fields),
        WHO,
        _where(),
        _more(),
    ]


_FIELDSETS: Mapping[type[DefinitionRow], Callable[[str, bool], list[Fieldset]]] = {
    Tool: _tool,
    Resource: _resource,
    ResourceTemplate: _template,
    Prompt: _prompt,
}


def fieldsets_of(
    model: type[DefinitionRow], kind: str, *, rich: bool = False
) -> list[Fieldset]:
    """Return the fieldsets of a definition of a kind.

    `rich` says that its config is more than the easy fields can show.
    """
    return _FIELDSETS[model](kind, rich)


def overlay_fieldsets(is_tool: bool) -> list[Fieldset]:
    """Return the fieldsets of what code declares."""
    fieldsets: list[Fieldset] = [
        (_("From code"), {"fields": ["code"]}),
        (_("What clients see"), {"fields": ["title", "description"]}),
    ]
    if is_tool:
        fieldsets.append((_("What it changes"), {"fields": Tool.HINTS}))
    fields = (*DEMANDS, "timeout", "tags", "position")
    fieldsets.append(
        (
            _("Who may use it, where and how"),
            {"fields": (*fields, "opened_version", "opened_fields")},
        )
    )
    return fieldsets
