"""What the forms of a site's own kinds are made of (`Kind.forms`)."""

from __future__ import annotations

from mcp_app.admin.forms import (
    ConfigForm,
    DefinitionForm,
    PromptForm,
    ResourceForm,
    ResourceTemplateForm,
    ToolForm,
)

__all__ = [
    "ConfigForm",
    "DefinitionForm",
    "PromptForm",
    "ResourceForm",
    "ResourceTemplateForm",
    "ToolForm",
]
