"""resources/read, resources/subscribe, resources/unsubscribe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_app.catalog.outputs import resource_output
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import TemplateMatch
from mcp_app.interface import rules
from mcp_app.interface.outcomes import Outcome
from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidParams, ResourceNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.server import call as calls
from mcp_app.server import parameters

if TYPE_CHECKING:
    from mcp_app.server.exchange import Exchange

NOT_FOUND = "Resource not found"
MOST_WATCHED = 1_000
"""Resources that a session may watch: each is a row."""


async def visible(exchange: Exchange, uri: str) -> TemplateMatch | None:
    """Return the match of a URI that the caller may use, None if there is none.

    An invalid URI has no match, even if a template would fit: the answer repeats
    it.  Stopped resources are found as well.
    """
    if rules.URI.fullmatch(uri):
        for found in exchange.catalog.matching(uri):
            exchange.entry = found.entry
            definition = found.entry.definition
            if exchange.sees(definition) and await exchange.allows(
                definition, found.variables
            ):
                return found
    return None


async def is_read(exchange: Exchange, uri: str) -> bool:
    """Whether the caller can read this resource."""
    found = await visible(exchange, uri)
    return found is not None and not found.stopped


async def read(exchange: Exchange) -> JsonObject:
    """Return the contents of a resource."""
    uri = _uri(exchange)
    matched = await visible(exchange, uri)
    if matched is None:
        raise calls.unknown(exchange, NOT_FOUND, ResourceNotFound(uri))
    if matched.stopped:
        calls.refuse_switched_off(exchange, "resource")
    entry = matched.entry
    mime_type = entry.definition.mime_type
    convert = partial(resource_output, uri=uri, mime_type=mime_type)
    try:
        bound = entry.runnable.bind(matched.variables)
    except ArgumentsRefused:
        # The URI fits the template, but its variables do not fit the function.
        exchange.record_outcome(Outcome.ARGUMENTS, NOT_FOUND)
        raise ResourceNotFound(uri) from None
    with calls.failures_as_errors(exchange, entry):
        output = await calls.run(exchange, entry, entry.runnable, bound, convert)
    contents = [each.to_wire(exchange.revision) for each in output.contents]
    return results.complete(
        {"contents": contents},
        exchange.revision,
        exchange.catalog.server_info(exchange.revision),
        _hint(exchange, matched),
    )


def _hint(exchange: Exchange, matched: TemplateMatch) -> results.CacheHint:
    """Return the cache hint; results that depend on answers must not be cached."""
    if "inputResponses" in exchange.params or "requestState" in exchange.params:
        return results.CacheHint(0, public=False)
    definition, server = matched.entry.definition, exchange.catalog.server
    open_to_all = not (definition.demands or server.demands)
    public = definition.public and server.public and open_to_all
    return results.CacheHint(definition.ttl_ms, public)


def _uri(exchange: Exchange) -> str:
    uri = parameters.string(exchange.params, "uri")
    if len(uri) > URI_LENGTH:
        raise InvalidParams(
            f"params.uri has {len(uri)} characters; {URI_LENGTH} are allowed."
        )
    return uri


async def subscribe(exchange: Exchange) -> JsonObject:
    """Subscribe the session to a URI."""
    uri = _uri(exchange)
    found = await visible(exchange, uri)
    if found is None:
        raise ResourceNotFound(uri)
    if found.stopped:
        calls.refuse_switched_off(exchange, "resource")
    sessions = exchange.adapters.sessions
    if not await sessions.subscribe(exchange.own_session, uri, MOST_WATCHED):
        raise InvalidParams(
            f"This session already watches {MOST_WATCHED} resources, which is the"
            " limit."
        )
    return {}


async def unsubscribe(exchange: Exchange) -> JsonObject:
    """End the session's subscription to a URI, if there is one."""
    await exchange.adapters.sessions.unsubscribe(exchange.own_session, _uri(exchange))
    return {}
