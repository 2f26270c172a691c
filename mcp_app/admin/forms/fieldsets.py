"""Which fields the form of a definition has, and under which heading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.page.wording import Said
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


class Behind(NamedTuple):
    """What a form asks about what stands behind its definition.

    `more` are the fields for those who write JSON; `description` and `classes` are
    those of the fieldset.
    """

    heading: Said
    fields: Sequence[str]
    description: Said = ""
    classes: Sequence[str] = ()
    more: Sequence[str] = ()

    @property
    def fieldset(self) -> Fieldset:
        return self.heading, {
            "fields": [*self.fields],
            "classes": self.classes,
            "description": self.description,
        }


def _texts(*fields: str) -> Fieldset:
    return _("What clients see"), {"fields": [*fields, "description"]}


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


def _tool(behind: Behind) -> list[Fieldset]:
    return [
        _texts("title", "name"),
        PARAMETERS,
        behind.fieldset,
        CHANGES,
        WHO,
        _where(),
        _more(*behind.more, "output_schema"),
    ]


def _resource(behind: Behind) -> list[Fieldset]:
    return [
        _texts("title", "name", "uri"),
        behind.fieldset,
        FOR_WHOM,
        WHO,
        _where("ttl_ms", "public"),
        _more(*behind.more, "annotations"),
    ]


def _template(behind: Behind) -> list[Fieldset]:
    return [
        _texts("title", "name", "uri_template"),
        VARIABLES,
        behind.fieldset,
        FOR_WHOM,
        WHO,
        _where("ttl_ms", "public"),
        _more(*behind.more, "annotations"),
    ]


def _prompt(behind: Behind) -> list[Fieldset]:
    return [
        _texts("title", "name"),
        ARGUMENTS,
        behind.fieldset,
        WHO,
        _where(),
        _more(*behind.more),
    ]


_FIELDSETS: Mapping[type[DefinitionRow], Callable[[Behind], list[Fieldset]]] = {
    Tool: _tool,
    Resource: _resource,
    ResourceTemplate: _template,
    Prompt: _prompt,
}


def fieldsets_of(model: type[DefinitionRow], behind: Behind) -> list[Fieldset]:
    """Return the fieldsets of a definition; its form says what stands behind it."""
    return _FIELDSETS[model](behind)


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
