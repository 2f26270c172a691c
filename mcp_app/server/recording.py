"""Writes calls into the call log."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_app.audit.writing import (
    MAX_CLIENT_NAME_LENGTH,
    MAX_ERROR_LENGTH,
    SHORT_ARGUMENTS,
    VALUES_BYTES,
)
from mcp_app.catalog.snapshot import TemplateEntry
from mcp_app.interface.call_record import ANSWERED, CircumstancesValues, Outcome
from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.negotiation import CLIENT_INFO

if TYPE_CHECKING:
    from mcp_app.audit.call_log import CallLog
    from mcp_app.server.run import Run

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "tools/call": ("tool", "arguments"),
    "resources/read": ("resource", "uri"),
    "prompts/get": ("prompt", "arguments"),
    "completion/complete": ("completion", "argument"),
    "events/subscribe": ("event", "arguments"),
    "events/unsubscribe": ("event", "arguments"),
}
"""The methods that are logged: the kind of each, and the parameter that is kept."""
TEMPLATE: Final = "template"
SESSION_HANDLE: Final = 16
"""Characters of a session's digest that tell sessions apart."""
TASK_PREFIX: Final = "t:"

_IN_VAIN: Final = frozenset({Outcome.UNKNOWN, Outcome.FORBIDDEN, Outcome.INVALID})
"""Outcomes that callers can cause without knowing any definition: nothing ran."""


LogArguments: TypeAlias = tuple[bytes, int, str]
"""The arguments that a row has; their length and digest if they are long."""


def record_call(
    audit: CallLog,
    run: Run,
    began: float,
    size: int,
    arguments: LogArguments | None = None,
) -> None:
    """Log a finished call whose answer has `size` bytes.

    `arguments` is the result of `encode_arguments`, if the arguments are many.
    """
    took = time.monotonic() - began
    arguments = arguments or _loggable_arguments(audit, run)
    ending = run.ending
    if len(ending.error) > MAX_ERROR_LENGTH:
        ending = ending._replace(error=ending.error[:MAX_ERROR_LENGTH])
    in_vain = run.request.principal.anonymous and ending.outcome in _IN_VAIN
    add = audit.add_in_vain if in_vain else audit.add
    add((circumstances(run), began, took, size, *arguments, ending))


async def encode_arguments(audit: CallLog, run: Run) -> LogArguments:
    """Return the many arguments of a call as its row has them; a thread does it."""
    return await large_work.run(run.request.owner, _loggable_arguments, audit, run)


def _loggable_arguments(audit: CallLog, run: Run) -> LogArguments:
    """Return the arguments if they are short, else their length and digest."""
    _, member = KINDS[run.request.method]
    value = run.request.params.get(member)
    text = b"" if value is None else jsonrpc.canonical(value)
    entry = run.entry
    return _size_and_digest(audit, text, None if entry is None else entry.hidden_values)


def _size_and_digest(
    audit: CallLog, text: bytes, hidden: Collection[str] | None
) -> LogArguments:
    """Return arguments as they are, but of long ones only the length and the digest."""
    # If `hidden` is None, no value is kept: a short text only waits for its digest.
    if len(text) > (SHORT_ARGUMENTS if hidden is None else VALUES_BYTES):
        return b"", len(text), audit.digest_arguments(text)
    return text, 0, ""


def record_answer(
    audit: CallLog, shared: CircumstancesValues, text: bytes, began: float, size: int
) -> None:
    """Log an answered call whose circumstances are known; `text` is its arguments."""
    took = time.monotonic() - began
    length, digest = 0, ""
    if len(text) > SHORT_ARGUMENTS:
        # The last of the circumstances are the hidden members of arguments.
        text, length, digest = _size_and_digest(audit, text, shared[-1])
    audit.add((shared, began, took, size, text, length, digest, ANSWERED))


def circumstances(run: Run, outcome: Outcome | None = None) -> CircumstancesValues:
    """Return the values that a call shares with similar calls."""
    request = run.request
    kind, _ = KINDS[request.method]
    entry, principal, session = run.entry, request.principal, request.session
    name, version, hidden = "", 0, None
    if entry is not None:
        name, version, hidden = entry.identity, entry.version, entry.hidden_values
        if type(entry) is TemplateEntry and kind == "resource":
            kind = TEMPLATE
    if session is not None:
        client = session.client
        client_name, client_version = client.name, client.version
        handle = session.digest[:SESSION_HANDLE]
    else:
        task = request.task
        handle = "" if task is None else task_handle(task.record.public_id)
        client_name, client_version = _client_identity(request.meta.get(CLIENT_INFO))
    return (
        request.catalog.server.slug,
        kind,
        name,
        version,
        str(outcome or run.ending.outcome),
        principal.kind,
        principal.user_id,
        principal.user_name,
        principal.client,
        client_name,
        client_version,
        handle,
        request.revision.version,
        hidden,
    )


def task_handle(public_id: str) -> str:
    """Return the handle of a task, which its calls have instead of a session's."""
    return f"{TASK_PREFIX}{public_id[: SESSION_HANDLE - len(TASK_PREFIX)]}"


def _client_identity(info: object) -> tuple[str, str]:
    """Return a client's name and version, cut to `MAX_CLIENT_NAME_LENGTH`."""
    if type(info) is not dict:
        return "", ""
    name, version = info.get("name"), info.get("version")
    return (
        name[:MAX_CLIENT_NAME_LENGTH] if type(name) is str else "",
        version[:MAX_CLIENT_NAME_LENGTH] if type(version) is str else "",
    )
