"""Whether a person must agree to a call before its tool runs, and to what.

A call that waits for a person is a task: `server.tasks` makes it, and a page of the
site takes the decision.  Then the process that claims the task runs it like any other.
"""

from __future__ import annotations

import asyncio
import logging
import re
from copy import deepcopy
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mcp_app.interface.call_record import Ending, Outcome
from mcp_app.interface.definitions import Approval
from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.results import tool_to_wire
from mcp_app.protocol.revisions import LATEST
from mcp_app.protocol.tasks import APPROVAL, COMPLETED, CONFIRMATION, FAILED, Decision
from mcp_app.server.invocation import context_headers, discard_changes
from mcp_app.server.outcome import Failed, time_limit

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import ToolEntry
    from mcp_app.server.request import Request
    from mcp_app.server.run import Run

logger = logging.getLogger("mcp_app.server")

MAX_SENTENCE: Final = 500
_PORT: Final = re.compile(r":\d+$")
STATUSES: Final = {"self": CONFIRMATION, "other": APPROVAL}
"""The status of a task that waits for a person, by `Approval.by`."""
SIGN_IN: Final = "A person must agree to this call. Sign in, so that it has one."
CHANGED: Final = (
    "The tool has changed since this call was approved, so it did not run. Call it"
    " again."
)
NOT_DECIDED: Final = "A person must agree to this call now. Call it again."
NOBODY_TO_ASK: Final = (
    "A person must agree to this call, and nobody can be asked here. It can wait for"
    " that only as a task."
)


async def find_decision(run: Run, entry: ToolEntry, arguments: JsonObject) -> Decision:
    """Return what a person must decide before a call runs.

    Raise `Failed` if no person can, or if the tool has changed since the decision.
    """
    approval, task = entry.definition.approval, run.request.task
    agreed = None if task is None else task.record.read_state().approval
    if agreed is not None and agreed["tool"] != fingerprint(entry):
        raise Failed(CHANGED, Outcome.TOOL_ERROR)
    if agreed is not None or approval is None:
        return Decision()
    is_needed, text = True, ""
    if approval.when is not None or approval.describe is not None:
        is_needed, text = await _ask_site(run, entry, approval, arguments)
    if not is_needed:
        return Decision()
    if task is not None or not run.request.principal.user_id:
        raise Failed(SIGN_IN if task is None else NOT_DECIDED, Outcome.TOOL_ERROR)
    return Decision(STATUSES[approval.by], text)


async def _ask_site(
    run: Run, entry: ToolEntry, approval: Approval, arguments: JsonObject
) -> tuple[bool, str]:
    """Return whether a call needs a decision, and a sentence for the person."""

    request = run.request

    def ask_functions() -> tuple[bool, str]:
        user, text = request.adapters.users.active_user(request.principal), ""
        with discard_changes():
            # Only False means that nobody has to agree.
            if (
                approval.when
                and approval.when(with_defaults(entry, arguments), user) is False
            ):
                return False, ""
            if approval.describe:
                described = approval.describe(with_defaults(entry, arguments), user)
                text = str(described or "")
        line = " ".join(text[: 4 * MAX_SENTENCE].split())
        return True, visible(line, MAX_SENTENCE)

    try:
        async with asyncio.timeout(time_limit(request, entry)):
            return await request.adapters.user_code.call(run, ask_functions)
    except ProtocolError:
        raise
    except Exception:
        # If the code cannot tell, a person is asked.
        logger.exception("A call of %s needs a decision.", entry.identity)
        return True, ""


def fingerprint(entry: ToolEntry) -> str:
    """Return a digest that differs if a tool has changed since an approval."""
    definition, approval = entry.definition, entry.definition.approval
    demand = approval and [approval.by, approval.permission]
    wire = tool_to_wire(definition, LATEST)
    # Not every process may have read the row of a tool that is still as in code.
    key = entry.key if entry.version else None
    return _digest_of(key, entry.version, demand, wire)


def call_digest(request: Request, entry: ToolEntry, arguments: JsonObject) -> str:
    """Return a digest: the same for calls that are the same to those who decide."""
    caller, server = request.principal.key, request.catalog.server.slug
    # Host and headers may tell tenants apart; ports differ between processes.
    address = _PORT.sub("", request.host), context_headers(request)
    tool = entry.identity, fingerprint(entry)
    return _digest_of(caller, server, address, tool, arguments)


def with_defaults(entry: ToolEntry, arguments: JsonObject) -> JsonObject:
    """Return a copy of the arguments, with the defaults of what was left out."""
    defaults = entry.definition.default_arguments
    # The arguments of the client come first, and replace defaults.
    return deepcopy({**arguments, **defaults, **arguments})


def _digest_of(*parts: object) -> str:
    return sha256(jsonrpc.canonical(parts)).hexdigest()


def approval_state(request: Request, entry: ToolEntry, text: str) -> JsonObject:
    """Return the part of a task's state about the decision (`TaskState.approval`)."""
    approval = entry.definition.approval
    # In 2025-11-25 a result with `isError` ends as failed ("Task Status").
    status = FAILED if request.revision.task_requests else COMPLETED
    result = request.complete_result({"isError": True})
    return {
        "text": text,
        "tool": fingerprint(entry),
        "permission": "" if approval is None else approval.permission,
        "refusal": {"status": status, "result": result},
    }


def waits_for_decision(run: Run) -> bool:
    """Whether a person must decide before this call runs, as far as is known."""
    return run.decision is not None and run.decision.status != ""


def ending_as_begun(run: Run) -> Ending:
    """Return the ending of a call that has become a task."""
    status = (run.decision or Decision()).status
    return Ending(Outcome.TASK, f"Waits for {status}" if status else "")
