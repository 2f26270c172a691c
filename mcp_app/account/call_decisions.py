"""Decide calls that wait for a person; the admin's log names who did it.

`by` is the person who decides.  No command and no tool can decide a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db import router
from django.utils.translation import gettext as _

from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import Task
from mcp_app.models.history import CHANGE, log_actions
from mcp_app.models.tasks import Status
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.protocol.tasks import UNDECIDED, read_json
from mcp_app.publishing.rights import Person
from mcp_app.server.recording import task_handle
from mcp_app.streams.tasks import refusal_ending

APPROVE: Final = "mcp_app.approve_task"
DECISIONS: Final = frozenset({"approve", "deny"})
"""The buttons of the form."""
MAX_REASON: Final = 500
DENIED: Final = (
    "A person denied this call. Nothing has happened.{reason} Do not try it again"
    " unless the user asks."
)


class CallDecided(Exception):
    """The call does not wait any more: it was decided, or its time is over."""

    def __init__(self) -> None:
        super().__init__(_("Meanwhile, this call was decided, or is over."))


def approve_call(by: Person, task: Task) -> None:
    """Let a call run; raise `CallDecided`, or `PermissionDenied` if `by` may not."""
    seconds = mcp_settings.limits.approval_wait
    approve = partial(Task.objects.approve, task.pk, task.status, by.pk, seconds)
    _decide_call(by, task, approve, _("Approved this call (%(tool)s, %(handle)s)."))


def deny_call(by: Person, task: Task, reason: str = "") -> None:
    """End a call that has not run; the model reads the reason.  Raises as above."""
    line = visible(" ".join(reason.split()), MAX_REASON)
    if line and line[-1] not in ".!?…":
        line += "."
    text = DENIED.format(reason=f" {line}" if line else "")

    def deny() -> bool:
        ending = refusal_ending(task, text)
        return Task.objects.deny(task.pk, task.status, by.pk, ending)

    _decide_call(by, task, deny, _("Denied this call (%(tool)s, %(handle)s)."))


def decide_call(by: Person, task: Task, form: Mapping[str, str]) -> str:
    """Act on the button of a form; return the message.  Raises as `approve_call`."""
    if "deny" not in form:
        approve_call(by, task)
        return _("Approved. It runs now.")
    deny_call(by, task, form.get("reason", ""))
    return _("Denied. Nothing has happened.")


def may_decide(by: Any, task: Task) -> bool:
    """Whether a call waits, and a person may decide it."""
    return task.status in UNDECIDED and not decision_problem(by, task)


def decision_problem(by: Any, task: Task) -> str:
    """Return why a person may not decide a waiting call; "" if the person may."""
    caller = str(read_json(task.caller)["principal"]["user_id"])
    if task.status == Status.CONFIRMATION:
        is_caller = by.is_active and str(by.pk) == caller
        return "" if is_caller else _("Only the person who calls can decide this.")
    # A person who tries a tool as another user counts as the caller, too.
    if str(by.pk) == caller or task.person == f"u{by.pk}":
        return _("It is your own call: another person decides it.")
    permission = read_json(task.state)["approval"]["permission"] or APPROVE
    for needed in (APPROVE, permission):
        if not by.has_perm(needed):
            return _("You need the permission %s to decide this.") % needed
    return ""


def calls_to_approve(by: Any) -> dict[int, int]:
    """Return the calls of others that a person may decide, the oldest first.

    The keys are primary keys, the values when calls began (milliseconds since 1970).
    """
    if not (by and by.has_perm(APPROVE)):
        return {}
    rows = Task.objects.still_open().filter(status=Status.APPROVAL).order_by("pk")
    rows = rows.only("caller", "state", "status", "person", "created_ms")
    return {row.pk: row.created_ms for row in rows if may_decide(by, row)}


def calls_to_confirm(by: Any) -> list[Task]:
    """Return the calls of a person that wait for this person, the oldest first."""
    rows = Task.objects.still_open().filter(status=Status.CONFIRMATION)
    rows = rows.filter(person=f"u{by.pk}").order_by("pk")
    return [row for row in rows if may_decide(by, row)]


def _decide_call(
    by: Person, task: Task, move: Callable[[], bool], message: str
) -> None:
    if task.status not in UNDECIDED:
        raise CallDecided
    if problem := decision_problem(by, task):
        raise PermissionDenied(problem)
    words = {"tool": task.tool, "handle": task_handle(task.public_id)}

    def move_and_log() -> None:
        with own_transaction(router.db_for_write(Task)):
            if not move():
                raise CallDecided
            log_actions(by, [task], CHANGE, message % words)

    persistently(move_and_log)
