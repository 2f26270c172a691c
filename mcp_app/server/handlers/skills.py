"""skills/list, skills/get, resources/directory/read (SEP-2640).

A skill that is hidden or stopped gets the same answers as an unknown one.
"""

from __future__ import annotations

from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidParams, MethodNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.finding import find_entry
from mcp_app.server.handlers.definitions import list_hint, list_page, requested_uri
from mcp_app.server.request import Request
from mcp_app.server.run import Run


async def list_skills(run: Run) -> bytes:
    """Return a page of the skills that the caller sees."""
    _require_skills(run.request)
    return await list_page(run)


async def get_skill(run: Run) -> JsonObject:
    """Return the entry of a skill."""
    _require_skills(run.request)
    uri = requested_uri(run.request)
    entry = find_entry(run, "skills", uri)
    if not await run.request.allows_arguments(entry.definition, {}):
        raise InvalidParams(f"Unknown skill: {uri:.200}")
    result = {"skill": entry.runnable.skill.entry}
    return run.request.complete_result(result, list_hint(run.request, "skills"))


async def read_directory(run: Run) -> JsonObject:
    """Return what is directly in a folder of a skill, all on one page."""
    request = run.request
    _require_skills(request)
    uri = requested_uri(request)
    if request.params.get("cursor") is not None:
        raise InvalidParams("There is no such cursor: all children are on one page.")
    for entry, skill, is_stopped in request.catalog.skills_around(uri):
        children = skill.children(uri)
        if not children or is_stopped or not request.sees(entry.definition):
            continue
        if await request.allows_arguments(entry.definition, {}):
            wire = results.resource_to_wire(entry.definition, request.revision)
            # SKILL.md has the form that it has in lists.
            entries = [wire if each["uri"] == skill.uri else each for each in children]
            hint = list_hint(request, "skills")
            return request.complete_result({"resources": entries}, hint)
    raise InvalidParams(f"There is no directory {uri:.200}")


def _require_skills(request: Request) -> None:
    """Raise if the server has no skill: then it lacks the extension."""
    if not request.catalog.has_skills:
        raise MethodNotFound(f"Method not found: {request.method}")
