"""The kind `skill`: instructions for agents, with files (SEP-2640).

A config is `{"frontmatter": {…}, "body": "…", "files": [{"path", "upload"}, …]}`: the
fields of SKILL.md beside name and description, its Markdown, and the uploaded files.
A file may have a `media_type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.runnable import Runnable
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Definition, ResourceDefinition
from mcp_app.interface.rules import media_type_problem
from mcp_app.kinds.blocks import content_bytes
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    AnyDefinition,
    Description,
    Effect,
    Incomplete,
    Kind,
    KindError,
    Uploads,
    object_schema,
)
from mcp_app.kinds.text import inline_runnable
from mcp_app.protocol.frontmatter import render_skill_file
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.protocol.skills import MARKDOWN, SKILL_FILE, Skill, SkillError, check_paths

_TEXT: JsonObject = {"type": "string"}
_NAMES: JsonObject = {"maxLength": 128, "not": {"enum": ["name", "description"]}}
"""Readers of YAML take no long names; name and description are columns of the row."""


class SkillKind(Kind):
    """Serves SKILL.md, and its files below the same address."""

    name = gettext_lazy("Instructions for agents, with files")
    examples = {
        ResourceDefinition: gettext_lazy(
            "A skill: how agents do a piece of work. Example: “Refund an order”."
        )
    }
    effect = Effect.NOTHING
    forms = {ResourceDefinition: "mcp_app.admin.forms.skill.SkillForm"}
    schema = object_schema(
        frontmatter={"type": "object", "propertyNames": _NAMES},
        body=_TEXT,
        files={
            "type": "array",
            "items": object_schema(
                "path", "upload", path=_TEXT, upload=_TEXT, media_type=_TEXT
            ),
        },
    )

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        if not isinstance(definition, ResourceDefinition):
            return definition
        size = len(_skill_file(definition, config)[1])
        return replace(definition, mime_type=MARKDOWN, size=size)

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        parts = [(_("Instructions"), config.get("body", ""))]
        if fields := config.get("frontmatter"):
            parts.append((_("More fields"), pretty_text(fields)))
        for each in config.get("files", []):
            digest = _("fingerprint %(digest)s") % {"digest": each["upload"]}
            parts.append((_("File %(path)s") % {"path": each["path"]}, digest))
        return parts

    def resource_runnable(
        self,
        definition: ResourceDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        if not (definition.description and config.get("body")):
            raise Incomplete(_("Write the instructions, and when to use them."))
        try:
            skill = _build_skill(definition, config, uploads)
        except SkillError as error:
            raise KindError(str(error), error.field) from None
        if skill.size > (max_bytes := mcp_settings.limits.skill):
            limit = f'MCP["LIMITS"]["SKILL"] allows {max_bytes:,}'
            raise KindError(f"This skill has {skill.size:,} bytes; {limit}.")

        def run(values: Mapping[str, object]) -> object:
            return skill.read(str(values.get("path", SKILL_FILE)))

        return replace(inline_runnable(run), skill=skill)


def _build_skill(
    definition: ResourceDefinition, config: JsonObject, uploads: Uploads
) -> Skill:
    listed: list[Any] = config.get("files", [])
    # Check this first: the dict below would keep only one of two files with one path.
    check_paths([SKILL_FILE, *(each["path"] for each in listed)])
    frontmatter, content = _skill_file(definition, config)
    files = {SKILL_FILE: (content, MARKDOWN)}
    for each in listed:
        media_type = each.get("media_type", "")
        if problem := media_type_problem(media_type):
            raise KindError(problem)
        files[each["path"]] = content_bytes(each, "base64", uploads), media_type
    return Skill(definition.uri, frontmatter, files)


def _skill_file(
    definition: ResourceDefinition, config: JsonObject
) -> tuple[JsonObject, bytes]:
    """Return the frontmatter of SKILL.md, and the whole file."""
    columns = {"name": definition.name, "description": definition.description}
    frontmatter = {**columns, **config.get("frontmatter", {})}
    return frontmatter, render_skill_file(frontmatter, config.get("body", ""))
