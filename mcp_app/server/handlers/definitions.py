"""Lists, prompts/get, resources/… and completion/complete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_app.catalog.outputs import resource_output
from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import Entry, Page, Place, TemplateMatch
from mcp_app.catalog.suggestions import fitting_suggestions, suggestions_of
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.questions import Completion
from mcp_app.protocol import cursors, jsonrpc, results
from mcp_app.protocol.apps import page_meta
from mcp_app.protocol.content import block_to_wire
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import InvalidParams, ResourceNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import URI_LENGTH
from mcp_app.server import call as calls
from mcp_app.server import coercion
from mcp_app.server.finding import (
    find_entry,
    find_match,
    find_template,
    stop_error,
    unknown_error,
    visible_listing,
)
from mcp_app.server.outcome import failure_of, forbidden_text, with_outcome
from mcp_app.server.request import Request
from mcp_app.server.run import Run

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import PromptEntry


# -- lists -----------------------------------------------------------------------------
# tools/list, resources/list, resources/templates/list, prompts/list, skills/list.

LIST_TTL_MS = 60_000
"""Streams announce changes, so clients may cache a list for a minute."""

LISTINGS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "templates",
    "prompts/list": "prompts",
    "skills/list": "skills",
}
"""The listing of the catalog that each method shows."""


def list_hint(request: Request, listing: str) -> results.CacheHint:
    """Return a hint, public if all see the same (server/utilities/caching)."""
    server = request.catalog.server
    restricted = request.catalog.listings[listing].is_restricted or server.demands
    return results.CacheHint(LIST_TTL_MS, server.is_public and not restricted)


async def list_page(run: Run) -> bytes:
    """Return a page of the list that the method names."""
    request = run.request
    listing = LISTINGS[request.method]
    entries = visible_listing(request, request.catalog.listings[listing])
    page = entries.page_after(request.revision, requested_place(request, listing))
    if page.result is None:
        page.result = jsonrpc.write(_page_result(request, listing, page))
    return page.result


def requested_place(request: Request, listing: str) -> Place | None:
    """Return the place after which a page of a list begins; None at its start."""
    token = request.params.get("cursor")
    if token is None:
        return None
    if type(token) is not str:
        raise InvalidParams("params.cursor must be a string.")
    slug, keys = request.catalog.server.slug, request.adapters.cursor_keys
    cursor = cursors.open_cursor(token, keys, server=slug, listing=listing)
    return cursor.position, cursor.name


def _page_result(request: Request, listing: str, page: Page) -> JsonObject:
    member = "resourceTemplates" if listing == "templates" else listing
    result: JsonObject = {member: page.items}
    if page.next is not None:
        cursor = Cursor(request.catalog.server.slug, listing, *page.next)
        key = request.adapters.cursor_keys[0]
        result["nextCursor"] = cursors.seal_cursor(cursor, key)
    return request.complete_result(result, list_hint(request, listing))


# -- prompts ---------------------------------------------------------------------------
# prompts/get.


async def get_prompt(run: Run) -> JsonObject:
    """Fill a prompt with its arguments."""
    request = run.request
    name = coercion.string_member(request.params, "name")
    entry: PromptEntry = find_entry(run, "prompts", name)
    arguments = coercion.strings_member(request.params, "arguments")
    try:
        check_arguments(entry, arguments)
        bound = entry.runnable.bind(dict(arguments))
    except ArgumentsRefused as error:
        violations = [f"{each.path}: {each.message}" for each in error.violations]
        text = f"The prompt {name}: {'; '.join(violations)}"
        raise with_outcome(InvalidParams(text), Outcome.ARGUMENTS) from None
    if not await request.allows_arguments(entry.definition, arguments):
        raise with_outcome(InvalidParams(forbidden_text(entry)), Outcome.FORBIDDEN)
    output = await calls.run_user_code(run, entry, entry.runnable, bound)
    messages = [
        {"role": each.role, "content": block_to_wire(each.content, request.revision)}
        for each in output.messages
    ]
    result: JsonObject = {"messages": messages}
    description = output.description or entry.definition.description
    if description:
        result["description"] = description
    return request.complete_result(result)


def check_arguments(entry: PromptEntry, arguments: dict[str, str]) -> None:
    """Raise for an argument that is missing or that the prompt does not have."""
    names = {argument.name for argument in entry.definition.arguments}
    for name in arguments:
        if name not in names:
            text = f"The prompt {entry.identity} has no argument {name!r}."
            raise with_outcome(InvalidParams(text), Outcome.ARGUMENTS)
    for each in entry.definition.arguments:
        if each.required and each.name not in arguments:
            text = f"The prompt {entry.identity} needs the argument {each.name!r}."
            raise with_outcome(InvalidParams(text), Outcome.ARGUMENTS)


# -- resources -------------------------------------------------------------------------
# resources/read, resources/subscribe, resources/unsubscribe.

MOST_WATCHED = 1_000
"""Resources that a session may watch: each is a row."""


async def read_resource(run: Run) -> JsonObject:
    """Return the contents of a resource."""
    uri = requested_uri(run.request)
    matched = await find_match(run, uri)
    if matched is None:
        raise unknown_error(run, ResourceNotFound(uri))
    if matched.stopped:
        raise stop_error(run.request, "templates")
    entry = matched.entry
    mime_type = entry.definition.mime_type
    # Hosts take the policy of a page from its contents.
    meta = page_meta(mime_type, entry.definition.meta)
    convert = partial(resource_output, uri=uri, mime_type=mime_type, meta=meta)
    try:
        bound = entry.runnable.bind(matched.variables)
    except ArgumentsRefused:
        # The URI fits the template, but its variables do not fit the function.
        raise with_outcome(ResourceNotFound(uri), Outcome.ARGUMENTS) from None
    output = await calls.run_user_code(run, entry, entry.runnable, bound, convert)
    contents = [content.to_wire(run.request.revision) for content in output.contents]
    hint = _resource_hint(run.request, matched)
    return run.request.complete_result({"contents": contents}, hint)


def _resource_hint(request: Request, matched: TemplateMatch) -> results.CacheHint:
    """Return the cache hint; results that depend on answers must not be cached."""
    if "inputResponses" in request.params or "requestState" in request.params:
        return results.CacheHint(0, public=False)
    definition, server = matched.entry.definition, request.catalog.server
    open_to_all = not (definition.demands or server.demands)
    public = definition.public and server.is_public and open_to_all
    return results.CacheHint(definition.ttl_ms, public)


def requested_uri(request: Request) -> str:
    """Return `params.uri`; raise if it is not a string, or too long."""
    uri = coercion.string_member(request.params, "uri")
    if len(uri) > URI_LENGTH:
        raise InvalidParams(
            f"params.uri has {len(uri)} characters; {URI_LENGTH} are allowed."
        )
    return uri


async def subscribe(run: Run) -> JsonObject:
    """Subscribe the session to a URI."""
    uri = requested_uri(run.request)
    match = await find_match(run, uri)
    if match is None:
        raise ResourceNotFound(uri)
    if match.stopped:
        raise stop_error(run.request, "templates")
    sessions = run.request.adapters.sessions
    if not await sessions.subscribe(run.request.own_session, uri, MOST_WATCHED):
        raise InvalidParams(
            f"This session already watches {MOST_WATCHED} resources, which is the"
            " limit."
        )
    return {}


async def unsubscribe(run: Run) -> JsonObject:
    """End the session's subscription to a URI, if there is one."""
    await run.request.adapters.sessions.unsubscribe(
        run.request.own_session, requested_uri(run.request)
    )
    return {}


# -- completion ------------------------------------------------------------------------
# completion/complete.

MAX_VALUES = 100


async def complete_argument(run: Run) -> JsonObject:
    """Suggest values for an argument of a prompt or a variable of a template.

    A completer in code replaces the suggestions of staff.
    """
    request = run.request
    reference = coercion.object_member(request.params, "ref", required=True)
    argument = coercion.object_member(request.params, "argument", required=True)
    context = coercion.object_member(request.params, "context")
    entry = _referenced_entry(run, reference)
    name = coercion.string_member(argument, "name", "params.argument")
    bound: JsonObject = {
        "value": coercion.string_member(argument, "value", "params.argument"),
        "arguments": coercion.strings_member(context, "arguments", "params.context"),
    }
    completion = await _run_completer(run, entry, name, bound)
    return request.complete_result({"completion": _completion_to_wire(completion)})


def _referenced_entry(run: Run, reference: JsonObject) -> Entry[Any, Any]:
    kind = reference.get("type")
    if kind == "ref/prompt":
        name = coercion.string_member(reference, "name", "params.ref")
        refuse = partial(_completion_error, name)
        prompt: PromptEntry = find_entry(run, "prompts", name, refuse)
        return prompt
    if kind == "ref/resource":
        uri = coercion.string_member(reference, "uri", "params.ref")
        entry = find_template(run, uri)
        if entry is None:
            raise unknown_error(run, _completion_error(uri))
        return entry
    raise InvalidParams(
        f"params.ref.type is {kind!r}: it must be ref/prompt or ref/resource."
    )


def _completion_error(identity: str, _: str = "") -> InvalidParams:
    """Return the error for an unknown name; the sentence of `find_entry` is dropped."""
    message = f"There is nothing to complete with the name {identity!r:.200}."
    return InvalidParams(message)


async def _run_completer(
    run: Run, entry: Entry[Any, Any], name: str, bound: JsonObject
) -> Completion:
    runnable = run.request.catalog.completers.get((entry.identity, name))
    runnable = runnable or entry.completers.get(name)
    if runnable is None:
        suggestions = suggestions_of(entry.definition).get(name, ())
        return fitting_suggestions(suggestions, bound["value"])
    try:
        arguments = runnable.bind(bound)
    except Exception as error:
        raise failure_of(run, entry, error) from error
    return await calls.run_user_code(run, entry, runnable, arguments)


def _completion_to_wire(completion: Completion) -> JsonObject:
    values = list(completion.values)
    total = len(values) if completion.total is None else completion.total
    has_more = completion.has_more
    if has_more is None:
        has_more = total > min(len(values), MAX_VALUES)
    return {"values": values[:MAX_VALUES], "total": total, "hasMore": has_more}
