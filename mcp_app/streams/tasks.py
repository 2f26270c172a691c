"""Rows of tasks: stored, read, taken from dead workers; all of it blocks."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from itertools import islice
from typing import Final

from django.db import router
from django.db.models import Max, Min, Q

from mcp_app.conf import Limits
from mcp_app.models import Change, Counter, Task
from mcp_app.models.expiry import ExpiredRows, expired_rows
from mcp_app.models.tasks import MAX_SIZE, OF_STRANGERS, TASK, Status, TaskQuerySet
from mcp_app.models.transactions import NowMilliseconds, own_transaction, persistently
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.tasks import (
    UNDECIDED,
    NewTask,
    TaskRecord,
    is_stranger,
    read_json,
)
from mcp_app.streams.claims import AT_ONCE, of_the_dead

ID_BYTES: Final = 24
COUNTER: Final = "tasks"
TOO_LARGE: Final = (
    "This call has {size} bytes with its arguments, and {most} are allowed in a task."
)
MAX_READABLE: Final = 64 * 1024
"""Bytes of a call about which a person can decide."""
NOBODY_DECIDED: Final = "Nobody decided within {hours:.3g} hours. Nothing has happened."
TOO_MANY_OPEN: Final = (
    "You have {count} unfinished tasks, and {most} are allowed. Wait for one, or cancel"
    " one."
)
TOO_MANY_UNDECIDED: Final = (
    "{count} of your calls wait until a person agrees, and {most} may. Tell the user;"
    " call again when some of them are decided."
)
TOO_MANY_ENDED: Final = (
    "The results of {count} of your tasks are kept, and {most} are allowed. Try again"
    " when the oldest has expired."
)
TOO_MANY_ROWS: Final = "This site has too many tasks. Try again later."
WORKER_DIED: Final = (
    "The worker that ran this task is gone. Nobody knows whether it had an effect."
)
RESTORED: Final = (
    "This site was restored from a backup while this task was open. Nobody knows"
    " whether it had an effect."
)
task_rows: TaskQuerySet = Task.objects.all()
"""The transitions of tasks, for rooms that may not import `models`."""
_COLUMNS: Final = tuple(each.name for each in fields(TaskRecord))


def _current_rows() -> TaskQuerySet:
    """Return the rows where they are written: replicas may be late."""
    return Task.objects.using(router.db_for_write(Task))


def _record_of(row: Task) -> TaskRecord:
    return TaskRecord(**{name: getattr(row, name) for name in _COLUMNS})


def store_task(new: NewTask, owner: str, limits: Limits) -> TaskRecord | str:
    """Insert a task; return why not if it is too large, or if there are too many."""
    size = sum(len(text.encode()) for text in (new.arguments, new.caller, new.state))
    # A call with a digest needs a person's agreement: the person must read the call.
    limit = MAX_SIZE if new.call_digest is None else MAX_READABLE
    if size > limit:
        return TOO_LARGE.format(size=size, most=limit)
    return persistently(partial(_insert_task, new, owner, limits))


def _insert_task(new: NewTask, owner: str, limits: Limits) -> TaskRecord | str:
    rows, columns = _current_rows(), asdict(new)
    ttl_ms = columns.pop("ttl_ms")
    with own_transaction(rows.db):
        # A count must include what others insert now, so all lock this row in turn.
        Counter.objects.using(rows.db).select_for_update().get_or_create(name=COUNTER)
        if new.call_digest is not None:
            same = rows.filter(call_digest=new.call_digest)
            same.expired().delete()
            if (row := same.first()) is not None:
                return _record_of(row)
        if refusal := _find_refusal(rows, new, limits):
            return refusal
        row = rows.create(
            **columns,
            public_id=secrets.token_urlsafe(ID_BYTES),
            owner=owner,
            created_ms=NowMilliseconds(),
            updated_ms=NowMilliseconds(),
            expires_ms=NowMilliseconds() + ttl_ms,
        )
        if not owner:
            # Another process may have a free place for it.
            Change.objects.using(rows.db).record(TASK, str(row.pk))
    return _record_of(rows.get(pk=row.pk))


def _find_refusal(rows: TaskQuerySet, new: NewTask, limits: Limits) -> str:
    """Return why no task may be added for a person now, "" if one may."""
    # `rates` also says whether limits of counts apply.
    if new.person and limits.rates:
        of_person = rows.filter(person=new.person)
        ended_tasks = of_person.filter(ended_ms__gt=0, expires_ms__gt=NowMilliseconds())
        open_tasks = of_person.still_open().exclude(status__in=UNDECIDED)
        max_open, too_many = limits.tasks_per_person, TOO_MANY_OPEN
        if new.status in UNDECIDED:
            open_tasks = of_person.still_open().filter(status__in=UNDECIDED)
            max_open, too_many = limits.approvals_per_person, TOO_MANY_UNDECIDED
        for tasks, limit, refusal in (
            (open_tasks, max_open, too_many),
            (ended_tasks, limits.ended_tasks_per_person, TOO_MANY_ENDED),
        ):
            if (count := tasks.count()) >= limit:
                return refusal.format(count=count, most=limit)
    keys, limit = rows.aggregate(first=Min("pk"), last=Max("pk")), limits.tasks_rows
    if is_stranger(new.person):
        # Strangers may fill only half, to leave room for others.
        rows, limit = rows.filter(OF_STRANGERS), limit // 2
    # Usually the span of the keys shows that there are fewer, without counting.
    span = keys["last"] - keys["first"] + 1 if keys["last"] else 0
    return TOO_MANY_ROWS if span >= limit and rows.count() >= limit else ""


def load_tasks(public_ids: Sequence[str]) -> dict[str, TaskRecord]:
    """Return tasks by their public ids; one statement."""
    rows = _current_rows().filter(
        public_id__in=public_ids, expires_ms__gt=NowMilliseconds()
    )
    return {row.public_id: _record_of(row) for row in rows}


def load_changed(keys: Sequence[int]) -> dict[int, TaskRecord]:
    """Return tasks by their primary keys; one statement."""
    return {row.pk: _record_of(row) for row in _current_rows().filter(pk__in=keys)}


def list_tasks(
    server: str, person: str, before: int | None, limit: int
) -> list[TaskRecord]:
    """Return the tasks of a person, the newest first."""
    rows = _current_rows().filter(server=server, person=person)
    rows = rows.filter(expires_ms__gt=NowMilliseconds())
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return [_record_of(row) for row in rows.order_by("-pk")[:limit]]


def claim_tasks(
    owner: str,
    limit: int,
    tools: Sequence[str] | None = None,
    full: Collection[str] = (),
) -> list[TaskRecord]:
    """Give a worker one task of `tools` per person; people in `full` have no turn."""
    return [_record_of(row) for row in Task.objects.claim(owner, limit, tools, full)]


def claim_task(pk: int, owner: str) -> TaskRecord | None:
    """Give a worker this task; return None if it does not wait."""
    claimed = Task.objects.filter(pk=pk).claim(owner, 1)
    return _record_of(claimed[0]) if claimed else None


def claim_sending(limit: int) -> list[int]:
    """Return the keys of tasks to send to the site's queue now."""
    return [row.pk for row in Task.objects.claim_sending(limit)]


def owned_keys(owner: str) -> set[int]:
    """Return the keys of the tasks that a worker runs."""
    rows = _current_rows().still_open().filter(owner=owner)
    return set(rows.values_list("pk", flat=True))


def release_tasks_of_dead(dead: Mapping[str, int | None]) -> int:
    """Let the tasks of dead workers run again, or end them; return how many."""
    died = of_the_dead("owner", dict(islice(dead.items(), AT_ONCE)))
    running = _current_rows().still_open().filter(died, status=Status.WORKING)
    keys = list(running.values_list("pk", flat=True)[:AT_ONCE])
    return sum(_lose_task(pk, died) for pk in keys)


def release_unknown(pk: int, owner: str) -> bool:
    """Release a task that `owner` has but does not run, as if `owner` had died."""
    return _lose_task(pk, Q(status=Status.WORKING, owner=owner))


def _lose_task(pk: int, died: Q) -> bool:
    return Task.objects.lose(pk, died, error_text(WORKER_DIED))


def error_text(message: str) -> str:
    """Return the error, as its row has it, of a task that must not just be repeated."""
    # JSON-RPC's code of an internal error.
    error = {"code": -32603, "message": message, "data": {"retryable": False}}
    return jsonrpc.write(error).decode()


def refusal_ending(task: Task, text: str) -> dict[str, str]:
    """Return the columns of an undecided task that ends, and does not run.

    Its result is complete: it is sent as it is stored.
    """
    refusal = read_json(task.state)["approval"]["refusal"]
    result = {"content": [{"type": "text", "text": text}], **refusal["result"]}
    return {"status": refusal["status"], "result": jsonrpc.write(result).decode()}


def lapse_calls(limits: Limits) -> int | None:
    """End some calls that nobody has decided in time; return how many, or None."""
    text = NOBODY_DECIDED.format(hours=limits.approval_wait / 3_600)
    rows = list(Task.objects.overdue(limits.approval_wait)[:AT_ONCE])
    endings = [(row, refusal_ending(row, text)) for row in rows]
    deny = partial(Task.objects.deny, approver=None)
    return sum(deny(row.pk, row.status, ending=end) for row, end in endings) or None


def expired_tasks(limits: Limits) -> Sequence[ExpiredRows]:
    """Return tasks to delete, and calls to end because nobody has decided them."""
    overdue = Task.objects.overdue(limits.approval_wait)
    return [
        ExpiredRows("undecided calls", overdue.count, partial(lapse_calls, limits)),
        expired_rows("tasks", Task.objects.expired()),
    ]
