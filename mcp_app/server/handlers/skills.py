"""skills/list, skills/get, resources/directory/read (SEP-2640).

Of a skill that is hidden or stopped they say what they say of an unknown one.
"""

from __future__ import annotations

from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidParams, MethodNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.exchange import Exchange
from mcp_app.server.finding import find_entry
from mcp_app.server.handlers.definitions import list_hint, list_page, requested_uri


async def list_skills(exchange: Exchange) -> bytes:
    """Return a page of the skills that the caller sees."""
    _require_skills(exchange)
    return await list_page(exchange)


async def get_skill(exchange: Exchange) -> JsonObject:
    """Return the entry of a skill."""
    _require_skills(exchange)
    uri = requested_uri(exchange)
    entry = find_entry(exchange, "skills", uri)
    if not await exchange.allows_arguments(entry.definition, {}):
        raise InvalidParams(f"Unknown skill: {uri:.200}")
    return _complete_result(exchange, {"skill": entry.runnable.skill.entry})


async def read_directory(exchange: Exchange) -> JsonObject:
    """Return what is directly in a folder of a skill, all on one page."""
    _require_skills(exchange)
    uri = requested_uri(exchange)
    if exchange.params.get("cursor") is not None:
        raise InvalidParams("params.cursor is none: all children are on one page.")
    for entry, skill, is_stopped in exchange.catalog.skills_around(uri):
        children = skill.children(uri)
        if not children or is_stopped or not exchange.sees(entry.definition):
            continue
        if await exchange.allows_arguments(entry.definition, {}):
            own = results.resource_to_wire(entry.definition, exchange.revision)
            resources = [own if each["uri"] == skill.uri else each for each in children]
            return _complete_result(exchange, {"resources": resources})
    raise InvalidParams(f"There is no directory {uri:.200}")


def _require_skills(exchange: Exchange) -> None:
    """Raise if the server has no skill: then it lacks the extension."""
    if not exchange.catalog.has_skills:
        raise MethodNotFound(f"Method not found: {exchange.method}")


def _complete_result(exchange: Exchange, result: JsonObject) -> JsonObject:
    restricted = exchange.catalog.listings["skills"].is_restricted
    return exchange.complete_result(result, list_hint(exchange, restricted=restricted))
