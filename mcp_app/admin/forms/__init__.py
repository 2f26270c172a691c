"""Forms to make definitions without writing JSON; `Kind.forms` names them.

`mcp_app.admin.forms.fieldsets` arranges their fields.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from django.utils.module_loading import import_string

from mcp_app.admin.editors.hints import FIELD_BY_COLUMN
from mcp_app.admin.forms.definition import ConfigForm, DefinitionForm, JsonForm
from mcp_app.admin.forms.event_type import EventTypeForm
from mcp_app.admin.forms.prompt import PromptForm
from mcp_app.admin.forms.resource import ResourceForm, ResourceTemplateForm
from mcp_app.admin.forms.server import ServerForm
from mcp_app.admin.forms.tool import ToolForm
from mcp_app.admin.forms.watched_form import WatchedForm
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds import Kind, usable_kinds
from mcp_app.kinds.registry import kind_classes
from mcp_app.models import (
    DefinitionRow,
    EventType,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)

__all__ = [
    "ConfigForm",
    "DefinitionForm",
    "PromptForm",
    "ResourceForm",
    "ResourceTemplateForm",
    "ServerForm",
    "ToolForm",
    "WatchedForm",
    "editing_field",
    "form_of",
    "kinds_for",
]

logger = logging.getLogger("mcp_app.kinds")

Form = type[DefinitionForm[Any]]

DEFINITIONS: Final[Mapping[type[DefinitionRow], type[Definition]]] = {
    Tool: ToolDefinition,
    Resource: ResourceDefinition,
    ResourceTemplate: ResourceTemplateDefinition,
    Prompt: PromptDefinition,
    EventType: EventDefinition,
}
FORMS: Final[Mapping[type[DefinitionRow], Form]] = {
    Tool: ToolForm,
    Resource: ResourceForm,
    ResourceTemplate: ResourceTemplateForm,
    Prompt: PromptForm,
    EventType: EventTypeForm,
}
"""The base form of each model's definitions, whatever their kind."""


def kinds_for(model: type[DefinitionRow]) -> Mapping[str, Kind]:
    """Return the kinds that definitions of this model can have, by their keys."""
    kinds = usable_kinds(mcp).items()
    return {key: kind for key, kind in kinds if DEFINITIONS[model] in kind.examples}


def form_of(model: type[DefinitionRow], kind: str) -> Form:
    """Return the form of a kind, even if the kind no longer exists."""
    kind_class = kinds_for(model).get(kind)
    path = None if kind_class is None else kind_class.forms.get(DEFINITIONS[model])
    bases: tuple[Form, ...] = (JsonForm, FORMS[model])
    try:
        bases = bases if path is None else (import_form(path, model),)
    except UnusableForm as error:
        # `manage.py check` reports it; meanwhile staff can edit the config as JSON.
        logger.error("%s", error)
    return type(bases[0].__name__, bases, {"KIND": kind})


def editing_field(row: DefinitionRow, column: str) -> str:
    """Return the field of the row's form that edits a column; "" if there is none."""
    if row.from_code:
        return column if column in row.content_columns() else ""
    if column != "config":
        return FIELD_BY_COLUMN.get(column, column)
    # The first of the kind's own fields shows errors of the config.
    form = form_of(type(row), row.kind)
    fields = form.kind_fields(row.json("config")).fields
    return next((field for field in fields if field not in form.BESIDE), "")


class UnusableForm(Exception):
    """A kind's form that cannot be used; the message names it."""


def import_form(path: str, model: type[DefinitionRow]) -> Form:
    """Import a form for the rows of a model; raise `UnusableForm` if it is none."""
    try:
        form: Any = import_string(path)
    except Exception as error:
        # Importing a module may raise anything.
        raise UnusableForm(f"the form {path!r} cannot be imported: {error}") from error
    is_form = isinstance(form, type) and issubclass(form, DefinitionForm)
    if not is_form or form._meta.model is not model:
        raise UnusableForm(f"the form {path!r} must be one for {model.__name__}.")
    return cast("Form", form)


def unusable_forms() -> Iterator[str]:
    """Yield a message for each form of a kind that cannot be used."""
    models = {about: model for model, about in DEFINITIONS.items()}
    for key, kind in kind_classes().items():
        for about, path in kind.forms.items():
            try:
                import_form(path, models[about])
            except UnusableForm as error:
                name = f"{kind.__module__}.{kind.__qualname__}"
                yield f'MCP["KINDS"][{key!r}] is {name!r}: {error}'
