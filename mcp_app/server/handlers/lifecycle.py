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
from mcp_app.server.finding import visible_listing
from mcp_app.server.handlers.definitions import list_hint
from mcp_app.server.request import SEVERITY, Request, described_client
from mcp_app.server.run import Run
from mcp_app.streams.open_session import Opening

SKILLS_HEADING = "Skills of this server, to be read before such work:"
MAX_SKILL_LINES = 20
MAX_SKILL_LINE = 150
"""Characters of a skill's address and description in the instructions."""
MAX_DESCRIPTION_BYTES = 16 * 1024
"""Bytes of a session's row that a client may fill; its icons are not stored."""


async def initialize(run: Run) -> JsonObject:
    """Open a session in the revision that was agreed on (basic/lifecycle)."""
    request = run.request
    params = request.params
    requested = coercion.string_member(params, "protocolVersion")
    capabilities = coercion.object_member(params, "capabilities", required=True)
    info = coercion.object_member(params, "clientInfo", required=True)
    coercion.string_member(info, "name", "params.clientInfo")
    coercion.string_member(info, "version", "params.clientInfo")
    client = described_client(info, capabilities)
    _check_description(client)
    revision = negotiation.negotiate(requested)
    request = request.with_changes(revision=revision)
    opening = Opening(
        request.principal,
        request.catalog.server.slug,
        revision,
        client,
        streams=request.streams,
    )
    run.session_id = await request.adapters.handshakes.create(opening)
    result: JsonObject = {
        "protocolVersion": revision.version,
        "capabilities": _capabilities(request),
        "serverInfo": request.catalog.server_info(revision),
    }
    return _with_instructions(request, result)


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


async def answer_ping(_: Run) -> JsonObject:
    return {}


async def discover_server(run: Run) -> JsonObject:
    """Return revisions and capabilities (2026-07-28, server/discover)."""
    request = run.request
    result: JsonObject = {
        "supportedVersions": list(SUPPORTED_VERSIONS),
        "capabilities": _capabilities(request),
    }
    result = _with_instructions(request, result)
    return request.complete_result(result, list_hint(request, "skills"))


def _capabilities(request: Request) -> JsonObject:
    revision, extensions = request.revision, list[JsonObject]()
    if request.catalog.has_tasks and request.adapters.tasks is not None:
        lists = not request.principal.anonymous
        extensions.append(task_capabilities(revision, lists=lists))
    if request.catalog.has_events:
        extensions.append(event_capabilities(revision, streams=request.streams))
    if request.catalog.has_apps and revision.stateless:
        extensions.append(app_capabilities())
    if request.catalog.has_skills:
        extensions.append(SKILL_CAPABILITIES)
    return results.capabilities(revision, *extensions, streams=request.streams)


def _with_instructions(request: Request, result: JsonObject) -> JsonObject:
    texts = request.catalog.server.instructions, _skill_lines(request)
    if any(texts):
        result["instructions"] = "\n\n".join(filter(None, texts))
    return result


def _skill_lines(request: Request) -> str:
    """Name the visible skills (skills, "Pointer from Server Instructions")."""
    listing = visible_listing(request, request.catalog.listings["skills"])
    lines = [
        one_line(f"{each.identity}: {each.definition.description}", MAX_SKILL_LINE)
        for each in islice(listing, MAX_SKILL_LINES)
    ]
    return "\n".join([SKILLS_HEADING, *lines]) if lines else ""


async def set_level(run: Run) -> JsonObject:
    """Set the least severe log message that the session wants."""
    request = run.request
    level = coercion.string_member(request.params, "level")
    if level not in SEVERITY:
        raise InvalidParams(
            f"params.level is {level!r}: it must be one of {', '.join(SEVERITY)}."
        )
    await request.adapters.sessions.set_level(request.own_session, SEVERITY[level])
    return {}
