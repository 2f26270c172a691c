"""Which definition a request is about: one that its caller sees and that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_app.catalog.snapshot import Entry, Listing, TemplateMatch, VisibilityKey
from mcp_app.catalog.stops import SWITCHED_OFF
from mcp_app.interface import rules
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.server import GET_TASK_RESULT, READ_SKILL, WAIT_FOR_EVENT
from mcp_app.protocol.errors import InsufficientScope, InvalidParams, ProtocolError
from mcp_app.protocol.tasks import OPTIONAL
from mcp_app.server.outcome import Failed, error_of_failure, with_outcome
from mcp_app.server.request import Request
from mcp_app.server.run import Run

_NOUNS: Final = {
    "tools": "tool",
    "prompts": "prompt",
    "templates": "resource",
    "events": "event",
    "skills": "skill",
}
"""The noun for the definitions in each part of the catalog."""


def find_entry(
    run: Run,
    part: str,
    name: str,
    refuse: Callable[[str], ProtocolError] = InvalidParams,
) -> Any:
    """Return an entry of a part of the catalog, such as "tools"; note it in the run.

    Raises if it is stopped.  If it is unknown or hidden from the caller, raises what
    `refuse` makes of a sentence: the error is the same for both, the call log differs.
    """
    request = run.request
    entry: Entry[Any, Any] | None = getattr(request.catalog, part).get(name)
    run.entry = entry
    if entry is None:
        check_switched_off(run, part, name)
    elif request.sees(entry.definition):
        return entry
    elif part == "tools" and request.lacks_scope(entry.definition):
        raise _beyond_scope(entry)
    raise unknown_error(run, refuse(f"Unknown {_NOUNS[part]}: {name:.200}"))


def check_switched_off(run: Run, part: str, name: str) -> None:
    """Raise if the caller may see this definition, but it is stopped."""
    run.entry = entry = run.request.catalog.switched_off(part, name)
    if entry is not None and run.request.sees(entry.definition):
        raise stop_error(run.request, part)


def stop_error(request: Request, part: str) -> Failed | ProtocolError:
    """Return the error that ends the call of a stopped definition."""
    what = "event type" if part == "events" else _NOUNS[part]
    failed = Failed(SWITCHED_OFF.format(what=what), Outcome.SWITCHED_OFF)
    return failed if part == "tools" else error_of_failure(request, failed)


def unknown_error(run: Run, error: ProtocolError) -> ProtocolError:
    """Return the error with its outcome for the call log: unknown or hidden."""
    outcome = Outcome.UNKNOWN if run.entry is None else Outcome.FORBIDDEN
    return with_outcome(error, outcome)


def _beyond_scope(entry: Entry[Any, Any]) -> InsufficientScope:
    """Return the error for an entry that only the scope of the caller's token hides."""
    message = (
        f"{entry.identity:.200} can change something, but this access token may only"
        " look things up. Sign in again and allow changes, or use a token that may"
        " change things."
    )
    return with_outcome(InsufficientScope(message), Outcome.FORBIDDEN)


async def find_match(run: Run, uri: str) -> TemplateMatch | None:
    """Return the match of a URI that the caller may use, None if there is none.

    An invalid URI has no match, even if a template would fit: the answer repeats
    it.  Stopped resources are found as well.
    """
    request = run.request
    if rules.URI.fullmatch(uri):
        for match in request.catalog.matches_of_uri(uri):
            run.entry = match.entry
            definition = match.entry.definition
            if request.sees(definition) and await request.allows_arguments(
                definition, match.variables
            ):
                return match
    return None


async def is_readable(run: Run, uri: str) -> bool:
    """Whether the caller can read this resource."""
    match = await find_match(run, uri)
    return match is not None and not match.stopped


def find_template(run: Run, uri: str) -> Entry[Any, Any] | None:
    """Return the template with this text, else one that the URI matches, if any."""
    request = run.request
    run.entry = template = request.catalog.templates.get(uri)
    if template is not None and request.sees(template.definition):
        return template
    check_switched_off(run, "templates", uri)
    for match in request.catalog.matches_of_uri(uri):
        run.entry = match.entry
        if request.sees(match.entry.definition):
            if match.stopped:
                raise stop_error(request, "templates")
            return match.entry
    return None


def visible_listing(request: Request, listing: Listing) -> Listing:
    """Return the part of a listing that the caller may see."""

    def is_visible(entry: Entry[Any, Any]) -> bool:
        if entry.identity == GET_TASK_RESULT and entry.runnable.ours:
            # It is visible if the caller sees a tool whose results it fetches.
            tools = (each.definition for each in request.catalog.offered["tools"])
            slow_tools = (tool for tool in tools if tool.task_support == OPTIONAL)
            return any(map(request.sees, slow_tools))
        if entry.identity == WAIT_FOR_EVENT and entry.runnable.ours:
            events = request.catalog.offered["events"]
            return any(request.sees(event.definition) for event in events)
        if entry.identity == READ_SKILL and entry.runnable.ours:
            skills = request.catalog.skills.values()
            return any(request.sees(skill.definition) for skill in skills)
        return request.sees(entry.definition)

    key = VisibilityKey(request.rights.met, request.principal.scope)
    return listing.visible_part(key, is_visible)
