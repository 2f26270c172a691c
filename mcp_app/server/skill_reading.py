"""The tool `read_skill`, for clients that know no skills and read no resources."""

from __future__ import annotations

import time
from typing import Any, Final

from mcp_app.catalog.snapshot import Entry
from mcp_app.interface.definitions import OurTool, ToolHints
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import READ_SKILL
from mcp_app.protocol.content import Block, EmbeddedResource, Text
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.skills import MAX_PATH_LENGTH, SKILL_FILE, Skill
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.server import recording
from mcp_app.server.context import current_call
from mcp_app.server.finding import find_match, visible_listing
from mcp_app.server.run import Run

_SKILL: Final = "The skill's address. Leave it out to get all skills."
_FILE: Final = f"A file of the skill, by its path; by default {SKILL_FILE}."
_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        name: {"type": "string", "maxLength": max_length, "description": words}
        for name, max_length, words in (
            ("skill", URI_LENGTH, _SKILL),
            ("file", MAX_PATH_LENGTH, _FILE),
        )
    },
    "additionalProperties": False,
}


async def _read_skill(*, arguments: JsonObject) -> ToolOutput:
    call = current_call.get()
    assert call is not None  # noqa: S101 - `run_user_code` has set it
    began = time.monotonic()
    listing = visible_listing(call.request, call.request.catalog.listings["skills"])
    uri = arguments.get("skill")
    if uri is None:
        listed = [
            {"skill": each.identity, "description": each.definition.description}
            for each in listing
        ]
        return ToolOutput((), structured={"skills": listed})
    skills = [each.runnable.skill for each in listing if _has_address(each, uri)]
    skill: Skill | None = skills[0] if skills else None
    if skill is None:
        raise ToolError(f"There is no skill {uri}. Call this without one to see all.")
    addresses = {name: address for address, name in skill.paths.items()}
    # Models also name a file by its whole address, or as SKILL.md refers to it.
    path = arguments.get("file") or skill.paths.get(uri, SKILL_FILE)
    path = path.removeprefix("./")
    # The read is recorded as a read of the resource, in addition to the call.
    params = {"uri": addresses.get(path, "")}
    reading = Run(call.request.with_changes(method="resources/read", params=params))
    if await find_match(reading, params["uri"]) is None:
        raise ToolError(f"The skill has no file {path}. It has {', '.join(addresses)}.")
    contents, audit = skill.read(path), call.request.adapters.audit
    if audit is not None:
        size = len(contents.text or contents.blob or "")
        recording.record_call(audit, reading, began, size)
    content: list[Block] = [
        EmbeddedResource(contents) if contents.text is None else Text(contents.text)
    ]
    if len(addresses) > 1:
        content.append(Text(f"Files of this skill: {', '.join(addresses)}"))
    return ToolOutput(content)


def _has_address(entry: Entry[Any, Any], uri: str) -> bool:
    """Whether an address is that of a skill, of its folder, or of a file of it."""
    skill = entry.runnable.skill
    return skill is not None and uri in (
        skill.uri.removesuffix(f"/{SKILL_FILE}"),
        *skill.paths,
    )


SKILL_TOOL: Final = (
    OurTool(
        name=READ_SKILL,
        title="Read a skill",
        description=(
            "Read instructions of this site for a piece of work, and the files that"
            " belong to them. Call it without a skill to see which there are."
        ),
        input_schema=_PARAMETERS,
        hints=ToolHints(read_only=True, idempotent=True, open_world=False),
    ),
    _read_skill,
)
