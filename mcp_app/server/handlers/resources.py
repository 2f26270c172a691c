"""resources/read, resources/subscribe, resources/unsubscribe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_app.catalog.outputs import resource_output
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import Matched
from mcp_app.interface import rules
from mcp_app.interface.outcomes import Outcome
from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidParams, ResourceNotFound
from mcp_app.protocol.jsonrpc import JsonObject
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.server import call as calls
from mcp_app.server import parameters

if TYPE_CHECKING:
    from mcp_app.server.exchange import Exchange

NOT_FOUND = "Resource not found"
MOST_WATCHED = 1_000
"""Resources that a session may watch: each is a row."""


def visible(exchange: Exchange, uri: str) -> Matched | None:
    """Return what a URI names for the caller, None where it names nothing.

    A text that is no URI is none, even where a template would fit: the answer
    repeats it.
    """
    found = _matched(exchange, uri)
    return found if found is not None and _sees(exchange, found) else None


def _matched(exchange: Exchange, uri: str) -> Matched | None:
    return exchange.catalog.match(uri) if rules.URI.fullmatch(uri) else None


def _sees(exchange: Exchange, found: Matched) -> bool:
    return exchange.sees(found.entry.definition)


async def read(exchange: Exchange) -> JsonObject:
    """Answer with the contents that a URI names."""
    uri = _uri(exchange)
    matched = _matched(exchange, uri)
    exchange.entry = None if matched is None else matched.entry
    if matched is None or not _sees(exchange, matched):
        raise calls.unknown(exchange, NOT_FOUND, ResourceNotFound(uri))
    entry = matched.entry
    mime_type = entry.definition.mime_type
    convert = partial(resource_output, uri=uri, mime_type=mime_type)
    try:
        bound = entry.runnable.bind(matched.variables)
    except ArgumentsRefused:
        # The URI fits the template, but its variables do not fit the function.
        exchange.failed(Outcome.ARGUMENTS, NOT_FOUND)
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


def _hint(exchange: Exchange, matched: Matched) -> results.CacheHint:
    """A result that depends on answers is in no cache's key: it must not be kept."""
    if "inputResponses" in exchange.params or "requestState" in exchange.params:
        return results.CacheHint(0, public=False)
    definition = matched.entry.definition
    public = (
        definition.public
        and exchange.catalog.server.public
        and not definition.permissions
    )
    return results.CacheHint(definition.ttl_ms, public)


def _uri(exchange: Exchange) -> str:
    uri = parameters.string(exchange.params, "uri")
    if len(uri) > URI_LENGTH:
        raise InvalidParams(
            f"params.uri has {len(uri)} characters; {URI_LENGTH} are allowed."
        )
    return uri


async def subscribe(exchange: Exchange) -> JsonObject:
    """Remember that the session watches a URI."""
    uri = _uri(exchange)
    if visible(exchange, uri) is None:
        raise ResourceNotFound(uri)
    sessions = exchange.adapters.sessions
    if not await sessions.subscribe(exchange.own_session, uri, MOST_WATCHED):
        raise InvalidParams(
            f"This session watches {MOST_WATCHED} resources already, which is the most."
        )
    return {}


async def unsubscribe(exchange: Exchange) -> JsonObject:
    """Forget that the session watches a URI; one that it does not watch is fine."""
    await exchange.adapters.sessions.unsubscribe(exchange.own_session, _uri(exchange))
    return {}
