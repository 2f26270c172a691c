"""Tasks: calls that run in the background, a row each.

Every change of a row is one UPDATE that names the state before.  If the row is in
another state by now, nothing changes, and the caller is told so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import models, router, transaction
from django.db.models.functions import Greatest, Least
from django.utils.translation import gettext_lazy as _

from mcp_app.models.changes import Change
from mcp_app.models.expiry import claim_rows
from mcp_app.models.fields import ExactCharField
from mcp_app.models.transactions import (
    ATTEMPTS,
    NowMilliseconds,
    own_transaction,
    persistently,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.tasks import (
    MAX_MESSAGE_LENGTH,
    STRANGERS,
    UNDECIDED,
    is_stranger,
    read_json,
)

OF_STRANGERS: Final = models.Q(person__startswith=STRANGERS)
MAX_SIZE: Final = 256 * 1024
"""Bytes that a task keeps of its call; as many for the answers to its questions."""
TOO_LARGE: Final = (
    "The answers to this task have {size} bytes with this one, and {most} are allowed."
)
TASK: Final = "task"
"""The kind of a change of a task; the ref is the primary key."""
MAX_DEATHS: Final = 3
"""A task does not run again if so many of its workers have died."""
LET_GO_MS: Final = 30_000
LATE_MS: Final = 120_000
MIN_PAUSE_MS: Final = 30_000
MAX_PAUSE_MS: Final = 600_000
"""The longest time until a task that waits is given to the site's queue again."""


class Status(models.TextChoices):
    """As on the wire (the extension's "Task Status")."""

    WORKING = "working", _("works")
    INPUT_REQUIRED = "input_required", _("waits for an answer")
    COMPLETED = "completed", _("completed")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    # These two are not on the wire: clients see such a task as working.
    CONFIRMATION = "confirmation", _("waits for confirmation")
    APPROVAL = "approval", _("waits for approval")


class TaskQuerySet(models.QuerySet["Task"]):
    """Rows, and their transitions; each returns whether it changed the row.

    A task whose status is working waits if it has no `owner`, and else runs.
    """

    def still_open(self) -> TaskQuerySet:
        return self.filter(ended_ms=None)

    def waiting(self) -> TaskQuerySet:
        living = self.still_open().filter(expires_ms__gt=NowMilliseconds())
        return living.filter(status=Status.WORKING, owner="")

    def late(self) -> TaskQuerySet:
        """Tasks that have waited for so long that no process seems to take them."""
        return self.waiting().filter(_is_late())

    def expired(self) -> TaskQuerySet:
        return self.filter(expires_ms__lt=NowMilliseconds())

    def claim(
        self,
        owner: str,
        limit: int,
        tools: Sequence[str] | None = None,
        full: Collection[str] = (),
    ) -> list[Task]:
        """Let a worker run the oldest waiting task of each person, `limit` at most.

        People in `full` have no turn; if `STRANGERS` is in it, no stranger has one.
        With `tools` the worker takes only their tasks, and others after a while: a
        process of an older release does not have all tools.
        """
        rows = self.exclude(person__in=full)
        if STRANGERS in full:
            rows = rows.exclude(OF_STRANGERS)
        if tools is not None:
            rows = rows.filter(_is_late() | models.Q(tool__in=tools))
        return rows._take(limit, owner=owner, updated_ms=NowMilliseconds())

    def claim_sending(self, limit: int) -> list[Task]:
        """Return tasks that wait, for the caller to give them to the site's queue.

        A task that goes on waiting is returned again: after half a minute, then later.
        """
        waited = NowMilliseconds() - models.F("updated_ms")
        pause = Least(Greatest(waited, MIN_PAUSE_MS), MAX_PAUSE_MS)
        due = self.filter(send_ms__lte=NowMilliseconds())
        return due._take(limit, send_ms=NowMilliseconds() + pause)

    def _take(self, limit: int, **values: Any) -> list[Task]:
        """Change the waiting tasks whose turn it is, and return them."""
        rows = self.using(router.db_for_write(Task)).waiting()
        for _attempt in range(ATTEMPTS):
            # Usually there are none: to find that out, nothing is locked.
            if not (keys := rows._keys_in_turn(limit)):
                break
            if tasks := persistently(partial(rows._take_locked, keys, values)):
                return tasks
        return []

    def _keys_in_turn(self, limit: int) -> list[int]:
        """Return each person's oldest task; if only strangers wait, that of one.

        People with the fewest running tasks come first.
        """
        running = self.model._base_manager.using(self.db).filter(ended_ms=None)
        # A statement of its own: one person may have thousands of waiting tasks.
        numbers = Counter(running.exclude(owner="").values_list("person", flat=True))
        stranger = models.Case(models.When(OF_STRANGERS, then=1), default=0)
        rows = self.values("person").annotate(first=models.Min("pk"))
        oldest = rows.order_by(stranger, "first").values_list("person", "first")
        # More turns (person, key) are read, because people whose tasks run come last.
        turns = sorted(
            oldest[: limit + len(numbers)],
            key=lambda turn: (is_stranger(turn[0]), numbers[turn[0]], turn[1]),
        )[:limit]
        firsts = [first for person, first in turns if not is_stranger(person)]
        return firsts or [first for _person, first in turns[:1]]

    def _take_locked(
        self, keys: Sequence[int], values: Mapping[str, Any]
    ) -> list[Task]:
        tasks = self.model._base_manager.using(self.db)
        with own_transaction(self.db):
            waiting = claim_rows(self.filter(pk__in=keys))
            keys = list(waiting.values_list("pk", flat=True))
            tasks.filter(pk__in=keys).update(**values)
        return list(tasks.filter(pk__in=keys).order_by("pk"))

    def release(self, pk: int, owner: str) -> bool:
        """Let another worker run a task again, because its own worker stops."""
        return self._move(pk, _runs_at(owner), owner="", send_ms=0)

    def park(self, pk: int, owner: str, state: JsonObject) -> bool:
        """Let a task wait for answers; no worker runs it meanwhile."""
        text = jsonrpc.write(state).decode()
        parked = Status.INPUT_REQUIRED
        return self._move(pk, _runs_at(owner), status=parked, owner="", state=text)

    def answer(self, pk: int, replies: Mapping[str, object]) -> bool:
        """Store answers to open questions; after the last answer the task goes on.

        Keys of other questions are ignored; the first answer counts.  Raise
        `InvalidParams` if the answers have more than `MAX_SIZE`.
        """
        return persistently(partial(self._store_answers, pk, replies))

    def _store_answers(self, pk: int, replies: Mapping[str, object]) -> bool:
        rows = self.using(router.db_for_write(Task))
        parked = models.Q(status=Status.INPUT_REQUIRED)
        with own_transaction(rows.db):
            row = rows.select_for_update().filter(parked, pk=pk).first()
            if row is None:
                return False
            state: Any = read_json(row.state)
            questions: dict[str, JsonObject] = state["questions"]
            for key, reply in replies.items():
                if key in questions:
                    questions[key].setdefault("reply", reply)
            answers = [question.get("reply") for question in questions.values()]
            size = len(jsonrpc.write([state.get("answered"), answers]))
            if size > MAX_SIZE:
                raise InvalidParams(TOO_LARGE.format(size=size, most=MAX_SIZE))
            values: dict[str, Any] = {"state": jsonrpc.write(state).decode()}
            if all("reply" in question for question in questions.values()):
                values.update(status=Status.WORKING, send_ms=0)
            return self._move(pk, parked, **values)

    def overdue(self, seconds: float) -> TaskQuerySet:
        """Tasks that have waited longer than this for somebody's decision."""
        return self.still_open().filter(_has_waited(seconds), status__in=UNDECIDED)

    def approve(self, pk: int, before: str, approver: object, seconds: float) -> bool:
        """Let a task run that has waited in the status `before` for less than this."""
        waits = models.Q(status=before) & ~_has_waited(seconds)
        approved = Status.WORKING
        return self._move(pk, waits, status=approved, approver_id=approver, send_ms=0)

    def deny(
        self, pk: int, before: str, approver: object, ending: Mapping[str, str]
    ) -> bool:
        """End a task as `ending` says: a person refused it, or nobody has decided."""
        values = {**_final_values(ending), "approver_id": approver}
        return self._move(pk, models.Q(status=before), **values)

    def end(self, pk: int, owner: str, ending: Mapping[str, str]) -> bool:
        """End a task as `ending` says: `status`, and `result`, `error` or `message`."""
        return self._move(pk, _runs_at(owner), **_final_values(ending))

    def let_go(self, pk: int) -> None:
        """Let an ended task expire soon, because its client has the result."""
        soon = Least("expires_ms", NowMilliseconds() + LET_GO_MS)
        persistently(partial(self.filter(pk=pk).update, expires_ms=soon))

    def cancel(self, pk: int, message: str) -> bool:
        """End a task in any status; its worker then hears of it, and stops the code."""
        ending = {"status": Status.CANCELLED.value, "message": message}
        return self._move(pk, models.Q(), **_final_values(ending))

    def lose(self, pk: int, died: models.Q, error: str) -> bool:
        """Let a task run again, or end with an error, if its worker has `died`."""
        again = models.Q(rerun=True, deaths__lt=MAX_DEATHS - 1)
        deaths = models.F("deaths") + 1
        ending = {"status": Status.FAILED, "error": error}
        return self._move(
            pk, died & again, deaths=deaths, owner="", send_ms=0
        ) or self._move(pk, died & ~again, deaths=deaths, **_final_values(ending))

    def fail(self, error: str) -> int:
        """End all open tasks with an error; no change is recorded."""
        ending = {"status": Status.FAILED.value, "error": error}
        values = {**_final_values(ending), "updated_ms": NowMilliseconds()}
        return self.still_open().update(**values)

    def note_progress(
        self, pk: int, owner: str, values: Mapping[str, object], *, tell: bool
    ) -> bool:
        """Store `progress`, `total` and `message`; `tell` those who watch."""
        return self._move(pk, _runs_at(owner), tell=tell, **values)

    def _move(
        self, pk: int, before: models.Q, *, tell: bool = True, **values: Any
    ) -> bool:
        """Change the row if it still fulfils the conditions, and `tell` of it."""
        return persistently(partial(self._move_once, pk, before, values, tell))

    def _move_once(
        self, pk: int, before: models.Q, values: Mapping[str, Any], tell: bool
    ) -> bool:
        using = router.db_for_write(Task)
        with transaction.atomic(using=using):
            row = self.model._base_manager.using(using).filter(before, pk=pk)
            moved = row.filter(ended_ms=None).update(
                updated_ms=NowMilliseconds(), **values
            )
            if moved and tell:
                Change.objects.using(using).record(TASK, str(pk))
        return bool(moved)


def _is_late() -> models.Q:
    return models.Q(updated_ms__lt=NowMilliseconds() - LATE_MS)


def _has_waited(seconds: float) -> models.Q:
    return models.Q(created_ms__lte=NowMilliseconds() - int(seconds * 1_000))


def _runs_at(owner: str) -> models.Q:
    return models.Q(status=Status.WORKING, owner=owner)


def _final_values(ending: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a task that ends; its arguments are emptied."""
    forgotten = {"owner": "", "arguments": "", "state": "", "call_digest": None}
    return {**forgotten, **ending, "ended_ms": NowMilliseconds()}


class Task(models.Model):
    """A call that runs in the background; times are of the database's clock.

    The principal with the key `holder` may read it; the limits of `person` hold.
    `caller` is JSON of who called, with what client; `state` is JSON of the questions
    and answers so far (`server.task_states`).  `result` and `error` are JSON as on the
    wire.
    From `send_ms` on it may be given to the site's queue (again), if it waits.
    `call_digest` is the digest of an open call that needs or has a person's agreement;
    `approver` is the person who has decided.
    """

    id = models.BigAutoField(primary_key=True)
    public_id = ExactCharField(max_length=64, unique=True)
    server = models.CharField(max_length=64)
    tool = models.CharField(max_length=128)
    holder = ExactCharField(max_length=500, blank=True)
    person = ExactCharField(max_length=500, blank=True)
    caller = models.TextField()
    revision = models.CharField(max_length=16)
    arguments = models.TextField(blank=True)
    state = models.TextField(blank=True)
    status = models.CharField(
        max_length=16, choices=Status.choices, default=Status.WORKING
    )
    message = models.CharField(max_length=MAX_MESSAGE_LENGTH, blank=True)
    progress = models.FloatField(null=True)
    total = models.FloatField(null=True)
    result = models.TextField(blank=True)
    error = models.TextField(blank=True)
    owner = models.CharField(max_length=32, blank=True)
    rerun = models.BooleanField(default=False)
    deaths = models.PositiveSmallIntegerField(default=0)
    # NULL instead of "": two empty texts would not be unique.
    call_digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    approver = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
    )
    send_ms = models.BigIntegerField(default=0, db_default=0)
    created_ms = models.BigIntegerField()
    updated_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)
    expires_ms = models.BigIntegerField(db_index=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        default_permissions = ()
        permissions = [
            ("view_task", _("Can see tasks")),
            ("cancel_task", _("Can cancel tasks")),
            ("approve_task", _("Can approve calls")),
        ]
        indexes = [
            models.Index(fields=["ended_ms", "owner"], name="mcp_task_open"),
            models.Index(fields=["person", "ended_ms"], name="mcp_task_person"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.public_id[:8]}"
