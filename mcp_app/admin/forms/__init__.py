"""Forms in which definitions are made without writing JSON, one for each kind.

Their fields are those that `mcp_app.admin.fieldsets` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_app.admin.forms.definition import DefinitionForm
from mcp_app.admin.forms.prompt import FunctionPromptForm, TextPromptForm
from mcp_app.admin.forms.resource import (
    FunctionResourceForm,
    FunctionTemplateForm,
    TextResourceForm,
    TextTemplateForm,
)
from mcp_app.admin.forms.server import ServerForm
from mcp_app.admin.forms.tool import FunctionToolForm, TextToolForm
from mcp_app.admin.forms.watched import WatchedForm
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

__all__ = ["FORMS", "DefinitionForm", "ServerForm", "WatchedForm"]

FORMS: Mapping[type[DefinitionRow], Mapping[str, type[DefinitionForm[Any]]]] = {
    Tool: {"text": TextToolForm, "function": FunctionToolForm},
    Resource: {"text": TextResourceForm, "function": FunctionResourceForm},
    ResourceTemplate: {"text": TextTemplateForm, "function": FunctionTemplateForm},
    Prompt: {"text": TextPromptForm, "function": FunctionPromptForm},
}
"""The form of each kind, by what it is a form for."""
