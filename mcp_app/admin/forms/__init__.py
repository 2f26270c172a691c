"""Forms in which definitions are made without writing JSON; each kind names its own.

Their fields are those that `mcp_app.admin.fieldsets` names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.utils.module_loading import import_string

from mcp_app.admin.forms.definition import ConfigForm, DefinitionForm
from mcp_app.admin.forms.prompt import JsonPromptForm, PromptForm
from mcp_app.admin.forms.resource import (
    JsonResourceForm,
    JsonTemplateForm,
    ResourceForm,
    ResourceTemplateForm,
)
from mcp_app.admin.forms.server import ServerForm
from mcp_app.admin.forms.tool import JsonToolForm, ToolForm
from mcp_app.admin.forms.watched import WatchedForm
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds import Kind, kinds_of
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

__all__ = [
    "ConfigForm",
    "DefinitionForm",
    "PromptForm",
    "ResourceForm",
    "ResourceTemplateForm",
    "ServerForm",
    "ToolForm",
    "WatchedForm",
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
}
WITHOUT: Final[Mapping[type[DefinitionRow], Form]] = {
    Tool: JsonToolForm,
    Resource: JsonResourceForm,
    ResourceTemplate: JsonTemplateForm,
    Prompt: JsonPromptForm,
}
"""The form of a kind that has none of its own."""


def kinds_for(model: type[DefinitionRow]) -> Mapping[str, Kind]:
    """Return the kinds that can stand behind such definitions, by their keys."""
    about = DEFINITIONS[model]
    known = kinds_of(mcp).items()
    return {key: kind for key, kind in known if about in kind.examples}


def form_of(model: type[DefinitionRow], kind: str) -> Form:
    """Return the form of a kind; of one that is not there any more, too."""
    known = kinds_for(model).get(kind)
    path = None if known is None else known.forms.get(DEFINITIONS[model])
    form = WITHOUT[model] if path is None else _imported(path, WITHOUT[model])
    return type(form.__name__, (form,), {"KIND": kind})


def _imported(path: str, otherwise: Form) -> Form:
    try:
        form: Form = import_string(path)
    except ImportError:
        # `manage.py check` tells of it; the config can be edited meanwhile.
        logger.exception("The form %s cannot be imported.", path)
        return otherwise
    return form
