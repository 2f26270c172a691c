"""Lists, prompts/get, resources/… and completion/complete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_app.catalog.outputs import resource_output
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import Entry, Listing, Page, TemplateMatch, VisibilityKey
from mcp_app.catalog.stops import fitting_suggestions, suggestions_of
from mcp_app.interface import rules
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.questions import Completion
from mcp_app.interface.server import GET_TASK_RESULT, WAIT_FOR_EVENT
from mcp_app.protocol import cursors, jsonrpc, results
from mcp_app.protocol.content import block_to_wire
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import InvalidParams, ResourceNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.server import call as calls
from mcp_app.server import coercion
from mcp_app.server.exchange import Exchange

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import PromptEntry


# -- lists -----------------------------------------------------------------------------
# tools/list, resources/list, resources/templates/list, prompts/list.

LIST_TTL_MS = 60_000
"""Streams announce changes, so clients may cache a list for a minute."""

LISTINGS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
}
"""The listing of the catalog that each method shows."""


def list_hint(exchange: Exchange, *, restricted: bool) -> results.CacheHint:
    """Return a hint, public if all see the same (server/utilities/caching)."""
    server = exchange.catalog.server
    public = server.is_public and not (restricted or server.demands)
    return results.CacheHint(LIST_TTL_MS, public)


def visible_listing(exchange: Exchange, listing: Listing) -> Listing:
    """Return the part of a listing that the caller may see."""

    def is_visible(entry: Entry[Any, Any]) -> bool:
        if entry.identity == GET_TASK_RESULT and entry.runnable.ours:
            # For those who see a tool that it fetches the results of.
            tools = (each.definition for each in exchange.catalog.offered["tools"])
            return any(each.task == OPTIONAL and exchange.sees(each) for each in tools)
        if entry.identity == WAIT_FOR_EVENT and entry.runnable.ours:
            events = exchange.catalog.offered["events"]
            return any(exchange.sees(each.definition) for each in events)
        return exchange.sees(entry.definition)

    by = VisibilityKey(exchange.rights.met, exchange.principal.scope)
    return listing.visible_part(by, is_visible)


async def list_page(exchange: Exchange) -> bytes:
    """Return a page of the list that the method names."""
    listing = LISTINGS[exchange.method]
    entries = visible_listing(exchange, exchange.catalog.listings[listing])
    token, position = exchange.params.get("cursor"), None
    if token is not None:
        if type(token) is not str:
            raise InvalidParams("params.cursor must be a string.")
        cursor = cursors.open_cursor(
            token,
            exchange.adapters.cursor_keys,
            server=exchange.catalog.server.slug,
            listing=listing,
        )
        position = cursor.position, cursor.name
    page = entries.page_after(exchange.revision, position)
    if page.result is None:
        page.result = jsonrpc.write(_page_result(exchange, listing, page))
    return page.result


def _page_result(exchange: Exchange, listing: str, page: Page) -> JsonObject:
    slug = exchange.catalog.server.slug
    member = "resourceTemplates" if listing == "templates" else listing
    result: JsonObject = {member: page.items}
    if page.next is not None:
        position, name = page.next
        result["nextCursor"] = cursors.seal_cursor(
            Cursor(slug, listing, position, name), exchange.adapters.cursor_keys[0]
        )
    restricted = exchange.catalog.listings[listing].is_restricted
    return exchange.complete_result(result, list_hint(exchange, restricted=restricted))


# -- prompts ---------------------------------------------------------------------------
# prompts/get.


async def get_prompt(exchange: Exchange) -> JsonObject:
    """Fill a prompt with its arguments."""
    name = coercion.string_member(exchange.params, "name")
    exchange.entry = entry = exchange.catalog.prompts.get(name)
    if entry is None:
        calls.check_switched_off(exchange, "prompts", name, "prompt")
    if entry is None or not exchange.sees(entry.definition):
        raise calls.unknown_error(exchange, f"Unknown prompt: {name:.200}")
    arguments = coercion.strings_member(exchange.params, "arguments")
    try:
        check_arguments(entry, arguments)
        bound = entry.runnable.bind(dict(arguments))
    except ArgumentsRefused as error:
        violations = [f"{each.path}: {each.message}" for each in error.violations]
        text = f"The prompt {name}: {'; '.join(violations)}"
        exchange.record_outcome(Outcome.ARGUMENTS, text)
        raise InvalidParams(text) from None
    except InvalidParams as error:
        exchange.record_outcome(Outcome.ARGUMENTS, error.message)
        raise
    if not await exchange.allows_arguments(entry.definition, arguments):
        raise InvalidParams(calls.forbidden_text(exchange, entry))
    with calls.failures_as_errors(exchange, entry):
        output = await calls.run_user_code(exchange, entry, entry.runnable, bound)
    messages = [
        {"role": each.role, "content": block_to_wire(each.content, exchange.revision)}
        for each in output.messages
    ]
    result: JsonObject = {"messages": messages}
    description = output.description or entry.definition.description
    if description:
        result["description"] = description
    return exchange.complete_result(result)


def check_arguments(entry: PromptEntry, arguments: dict[str, str]) -> None:
    """Raise for an argument that is missing or that the prompt does not have."""
    known = {each.name for each in entry.definition.arguments}
    for name in arguments:
        if name not in known:
            raise InvalidParams(
                f"The prompt {entry.identity} has no argument {name!r}."
            )
    for each in entry.definition.arguments:
        if each.required and each.name not in arguments:
            raise InvalidParams(
                f"The prompt {entry.identity} needs the argument {each.name!r}."
            )


# -- resources -------------------------------------------------------------------------
# resources/read, resources/subscribe, resources/unsubscribe.

UNKNOWN_RESOURCE = "Resource not found"
MOST_WATCHED = 1_000
"""Resources that a session may watch: each is a row."""


async def visible_match(exchange: Exchange, uri: str) -> TemplateMatch | None:
    """Return the match of a URI that the caller may use, None if there is none.

    An invalid URI has no match, even if a template would fit: the answer repeats
    it.  Stopped resources are found as well.
    """
    if rules.URI.fullmatch(uri):
        for match in exchange.catalog.matches_of_uri(uri):
            exchange.entry = match.entry
            definition = match.entry.definition
            if exchange.sees(definition) and await exchange.allows_arguments(
                definition, match.variables
            ):
                return match
    return None


async def is_readable(exchange: Exchange, uri: str) -> bool:
    """Whether the caller can read this resource."""
    match = await visible_match(exchange, uri)
    return match is not None and not match.stopped


async def read_resource(exchange: Exchange) -> JsonObject:
    """Return the contents of a resource."""
    uri = _requested_uri(exchange)
    matched = await visible_match(exchange, uri)
    if matched is None:
        raise calls.unknown_error(exchange, UNKNOWN_RESOURCE, ResourceNotFound(uri))
    if matched.stopped:
        calls.refuse_switched_off(exchange, "resource")
    entry = matched.entry
    mime_type = entry.definition.mime_type
    convert = partial(resource_output, uri=uri, mime_type=mime_type)
    try:
        bound = entry.runnable.bind(matched.variables)
    except ArgumentsRefused:
        # The URI fits the template, but its variables do not fit the function.
        exchange.record_outcome(Outcome.ARGUMENTS, UNKNOWN_RESOURCE)
        raise ResourceNotFound(uri) from None
    with calls.failures_as_errors(exchange, entry):
        output = await calls.run_user_code(
            exchange, entry, entry.runnable, bound, convert
        )
    contents = [each.to_wire(exchange.revision) for each in output.contents]
    hint = _resource_hint(exchange, matched)
    return exchange.complete_result({"contents": contents}, hint)


def _resource_hint(exchange: Exchange, matched: TemplateMatch) -> results.CacheHint:
    """Return the cache hint; results that depend on answers must not be cached."""
    if "inputResponses" in exchange.params or "requestState" in exchange.params:
        return results.CacheHint(0, public=False)
    definition, server = matched.entry.definition, exchange.catalog.server
    open_to_all = not (definition.demands or server.demands)
    public = definition.public and server.is_public and open_to_all
    return results.CacheHint(definition.ttl_ms, public)


def _requested_uri(exchange: Exchange) -> str:
    uri = coercion.string_member(exchange.params, "uri")
    if len(uri) > URI_LENGTH:
        raise InvalidParams(
            f"params.uri has {len(uri)} characters; {URI_LENGTH} are allowed."
        )
    return uri


async def subscribe(exchange: Exchange) -> JsonObject:
    """Subscribe the session to a URI."""
    uri = _requested_uri(exchange)
    match = await visible_match(exchange, uri)
    if match is None:
        raise ResourceNotFound(uri)
    if match.stopped:
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
    await exchange.adapters.sessions.unsubscribe(
        exchange.own_session, _requested_uri(exchange)
    )
    return {}


# -- completion ------------------------------------------------------------------------
# completion/complete.

MAX_VALUES = 100


async def complete_argument(exchange: Exchange) -> JsonObject:
    """Suggest values for an argument of a prompt or a variable of a template.

    A completer in code replaces the suggestions of staff.
    """
    reference = coercion.object_member(exchange.params, "ref", required=True)
    argument = coercion.object_member(exchange.params, "argument", required=True)
    context = coercion.object_member(exchange.params, "context")
    entry = _referenced_entry(exchange, reference)
    name = coercion.string_member(argument, "name", "params.argument")
    bound: JsonObject = {
        "value": coercion.string_member(argument, "value", "params.argument"),
        "arguments": coercion.strings_member(context, "arguments", "params.context"),
    }
    completion = await _run_completer(exchange, entry, name, bound)
    return exchange.complete_result({"completion": _completion_to_wire(completion)})


def _referenced_entry(exchange: Exchange, reference: JsonObject) -> Entry[Any, Any]:
    kind = reference.get("type")
    entry: Entry[Any, Any] | None
    if kind == "ref/prompt":
        identity = coercion.string_member(reference, "name", "params.ref")
        entry = exchange.catalog.prompts.get(identity)
        if entry is None:
            calls.check_switched_off(exchange, "prompts", identity, "prompt")
    elif kind == "ref/resource":
        identity = coercion.string_member(reference, "uri", "params.ref")
        entry = _matching_template(exchange, identity)
    else:
        raise InvalidParams(
            f"params.ref.type is {kind!r}: it must be ref/prompt or ref/resource."
        )
    exchange.entry = entry
    if entry is None or not exchange.sees(entry.definition):
        message = f"There is nothing to complete with the name {identity!r:.200}."
        raise calls.unknown_error(exchange, message)
    return entry


def _matching_template(exchange: Exchange, uri: str) -> Entry[Any, Any] | None:
    """Return the template with this text, else one that the URI matches."""
    template = exchange.catalog.templates.get(uri)
    if template is not None and exchange.sees(template.definition):
        return template
    calls.check_switched_off(exchange, "templates", uri, "resource")
    fitting = list(exchange.catalog.matches_of_uri(uri))
    candidates = (each for each in fitting if exchange.sees(each.entry.definition))
    matched = next(candidates, None)
    if matched is None:
        return fitting[0].entry if fitting else None
    if matched.stopped:
        exchange.entry = matched.entry
        calls.refuse_switched_off(exchange, "resource")
    return matched.entry


async def _run_completer(
    exchange: Exchange, entry: Entry[Any, Any], name: str, bound: JsonObject
) -> Completion:
    runnable = exchange.catalog.completers.get((entry.identity, name))
    runnable = runnable or entry.completers.get(name)
    if runnable is None:
        suggestions = suggestions_of(entry.definition).get(name, ())
        return fitting_suggestions(suggestions, bound["value"])
    with calls.failures_as_errors(exchange, entry):
        return await calls.run_user_code(
            exchange, entry, runnable, runnable.bind(bound)
        )


def _completion_to_wire(completion: Completion) -> JsonObject:
    values = list(completion.values)
    total = len(values) if completion.total is None else completion.total
    more = completion.has_more
    if more is None:
        more = total > min(len(values), MAX_VALUES)
    return {"values": values[:MAX_VALUES], "total": total, "hasMore": more}
