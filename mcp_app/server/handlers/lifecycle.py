"""initialize, ping, server/discover, logging/setLevel."""

from __future__ import annotations

from itertools import islice

from mcp_app.interface.context import Client
from mcp_app.interface.rules import one_line
from mcp_app.protocol import jsonrpc, negotiation, results
from mcp_app.protocol.apps import app_capabilities
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.events import event_capabilities
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import SUPPORTED_VERSIONS
from mcp_app.protocol.skills import SKILL_CAPABILITIES
from mcp_app.protocol.tasks import task_capabilities
from mcp_app.server import coercion
from mcp_app.server.exchange import SEVERITY, Exchange, described_client
from mcp_app.server.finding import visible_listing
from mcp_app.server.handlers.definitions import list_hint
from mcp_app.streams.open_session import Opening

SKILLS_HEADING = "Skills of this server, to be read before such work:"
MAX_SKILL_LINES = 20
MAX_SKILL_LINE = 150
"""Characters of a skill's address and description in the instructions."""
MAX_DESCRIPTION_BYTES = 16 * 1024
"""Bytes of a session's row that a client may fill; its icons are not stored."""


async def initialize(exchange: Exchange) -> JsonObject:
    """Open a session in the revision that was agreed on (basic/lifecycle)."""
    params = exchange.params
    requested = coercion.string_member(params, "protocolVersion")
    capabilities = coercion.object_member(params, "capabilities", required=True)
    info = coercion.object_member(params, "clientInfo", required=True)
    coercion.string_member(info, "name", "params.clientInfo")
    coercion.string_member(info, "version", "params.clientInfo")
    client = described_client(info, capabilities)
    _check_description(client)
    revision = negotiation.negotiate(requested)
    exchange.revision = revision
    opening = Opening(
        exchange.principal,
        exchange.catalog.server.slug,
        revision,
        client,
        streams=exchange.streams,
    )
    exchange.opened_session = await exchange.adapters.handshakes.create(opening)
    result: JsonObject = {
        "protocolVersion": revision.version,
        "capabilities": _capabilities(exchange),
        "serverInfo": exchange.catalog.server_info(revision),
    }
    return _with_instructions(exchange, result)


def _check_description(client: Client) -> None:
    """Raise if a client's description does not fit into a session's row."""
    info = jsonrpc.write([client.name, client.version, client.title])
    capabilities = jsonrpc.write(client.capabilities)
    for member, text in (("clientInfo", info), ("capabilities", capabilities)):
        if jsonrpc.holds_nul(text):
            raise InvalidParams(f"params.{member} has a NUL character.")
    size = len(info) + len(capabilities)
    if size > MAX_DESCRIPTION_BYTES:
        raise InvalidParams(
            f"params.clientInfo (without icons) and params.capabilities have {size}"
            f" bytes; {MAX_DESCRIPTION_BYTES} are allowed."
        )


async def answer_ping(_: Exchange) -> JsonObject:
    return {}


async def discover_server(exchange: Exchange) -> JsonObject:
    """Return revisions and capabilities (2026-07-28, server/discover)."""
    result: JsonObject = {
        "supportedVersions": list(SUPPORTED_VERSIONS),
        "capabilities": _capabilities(exchange),
    }
    result = _with_instructions(exchange, result)
    restricted = exchange.catalog.listings["skills"].is_restricted
    return exchange.complete_result(result, list_hint(exchange, restricted=restricted))


def _capabilities(exchange: Exchange) -> JsonObject:
    revision, more = exchange.revision, list[JsonObject]()
    if exchange.catalog.has_tasks and exchange.adapters.tasks is not None:
        lists = not exchange.principal.anonymous
        more.append(task_capabilities(revision, lists=lists))
    if exchange.catalog.has_events:
        more.append(event_capabilities(revision, streams=exchange.streams))
    if exchange.catalog.has_apps and revision.stateless:
        more.append(app_capabilities())
    if exchange.catalog.has_skills:
        more.append(SKILL_CAPABILITIES)
    return results.capabilities(revision, *more, streams=exchange.streams)


def _with_instructions(exchange: Exchange, result: JsonObject) -> JsonObject:
    texts = exchange.catalog.server.instructions, _skill_lines(exchange)
    if any(texts):
        result["instructions"] = "\n\n".join(filter(None, texts))
    return result


def _skill_lines(exchange: Exchange) -> str:
    """Name the skills that the caller sees (skills, "Pointer from …Instructions")."""
    listing = visible_listing(exchange, exchange.catalog.listings["skills"])
    lines = [
        one_line(f"{each.identity}: {each.definition.description}", MAX_SKILL_LINE)
        for each in islice(listing, MAX_SKILL_LINES)
    ]
    return "\n".join([SKILLS_HEADING, *lines]) if lines else ""


async def set_level(exchange: Exchange) -> JsonObject:
    """Set the least severe log message that the session wants."""
    level = coercion.string_member(exchange.params, "level")
    if level not in SEVERITY:
        raise InvalidParams(
            f"params.level is {level!r}: it must be one of {', '.join(SEVERITY)}."
        )
    await exchange.adapters.sessions.set_level(exchange.own_session, SEVERITY[level])
    return {}
