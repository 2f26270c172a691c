"""One trial: a client's request as a chosen caller, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final

from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.conf import Limits
from mcp_app.interface.call_record import Outcome
from mcp_app.kinds import KindError
from mcp_app.process.current import process
from mcp_app.process.runtime import Process
from mcp_app.process.tasks import TaskRunner
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.cursors import Cursor, seal_cursor
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.events import Occurred
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.events import LISTING
from mcp_app.transports.in_process import (
    Caller,
    InProcessClient,
    Message,
    SessionRefused,
    decline_question,
)
from mcp_app.transports.stdio.connection import Forbidden, NotServed, NotSignedIn
from mcp_app.workbench.trying.dry_run import DryRunUserCode, limit_time
from mcp_app.workbench.trying.dry_run_outcome import DryRunOutcome
from mcp_app.workbench.trying.offer import TriedRow, WorkingCopy, answering_entries

SAMPLING: Final = "sampling/createMessage"
LATEST_EVENTS: Final = 50
RANDOM: Final = frozenset({"_meta", "elicitationId"})
"""Members of a question that differ each time it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried.

    `answers` are the results of questions by `Question.answer_key`.  Without `streams`
    only the answer reaches the client.  Without `row` any definition may answer.
    """

    server: str
    method: str
    params: JsonObject
    caller: Caller
    row: TriedRow | None = None
    copy: WorkingCopy | None = None
    answers: Mapping[str, JsonObject] = field(default_factory=dict)
    streams: bool = True
    is_dry: bool = False
    """Whether its changes in this site's databases are undone."""
    is_task: bool = False
    """Whether it becomes a task, which any process that runs tasks may run."""
    topic: str = ""
    """The topic of an event type: the poll tells of its latest events."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the server asks its client; `name` is its key in a request that is retried.

    `name` is "" in a session, where the question comes while the call runs.
    """

    method: str
    params: JsonObject
    name: str = ""

    @property
    def answer_key(self) -> str:
        """The key of the answer when the question is asked again."""
        params = {key: each for key, each in self.params.items() if key not in RANDOM}
        return sha256(jsonrpc.canonical([self.method, params, self.name])).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a plan; times are in milliseconds.

    `refused` is the HTTP status with which clients are turned away, 0 if they are not.
    `reason` says why, or why a working copy cannot run.
    """

    messages: tuple[Message, ...] = ()
    answer: JsonObject = field(default_factory=dict)
    size: int = 0
    """Bytes of the answer."""
    took_ms: float = 0
    outcome: Outcome = Outcome.ANSWERED
    failure: str = ""
    """The error number of a crash, in the log."""
    questions: tuple[Question, ...] = ()
    """The questions without an answer."""
    state: str = ""
    """The sealed state that goes back with the answers."""
    refused: int = 0
    reason: str = ""
    occurrences: int = 0
    """How many events of this type were looked at."""
    dry_run: DryRunOutcome | None = None
    """The outcome of the changes; None if they stay."""

    @property
    def result(self) -> JsonObject:
        """The result; empty if there is an error instead."""
        result: JsonObject = self.answer.get("result", {})
        return result

    @property
    def error(self) -> JsonObject:
        """The error of the protocol; empty if there is none."""
        error: JsonObject = self.answer.get("error", {})
        return error

    @property
    def task_id(self) -> str:
        """The public id of the task that the call became, "" for none."""
        task: JsonObject = self.result.get("task", self.result)
        return task.get("taskId", "") if self.outcome is Outcome.TASK else ""


def is_rejected(method: str, answer: JsonObject) -> bool:
    """Whether the person refused to answer for a model: its result cannot say so."""
    return method == SAMPLING and "action" in answer


Observe = Callable[[Message], object]


async def run_trial(plan: Plan, observe: Observe = lambda message: None) -> Trial:
    """Try a plan on the loop of the process; `observe` gets each message as it comes.

    If this is cancelled, so is the call.
    """
    run_ = _Run(plan, observe)
    try:
        client = run_.create_client(process())
        await client.check_served()
        trial = await run_.finish_trial(client)
        if trial.task_id:
            process().tasks.claim_soon()
        return trial
    except KindError as error:
        return Trial(reason=error.message, outcome=Outcome.FAILED)
    except ProtocolError as error:
        return Trial(refused=status_of(error), reason=error.message)


def status_of(error: ProtocolError) -> int:
    """Return the HTTP status with which a client is turned away."""
    if isinstance(error, NotSignedIn):
        return HTTPStatus.UNAUTHORIZED
    if isinstance(error, Forbidden):
        return HTTPStatus.FORBIDDEN
    not_served = isinstance(error, NotServed)
    return HTTPStatus.NOT_FOUND if not_served else error.http_status


class _Run:
    def __init__(self, plan: Plan, observe: Observe) -> None:
        self._plan = plan
        self._observe = observe
        self._messages: list[Message] = []
        self._open_questions: list[Question] = []
        self._dry_run: DryRunUserCode | None = None

    def create_client(self, current: Process) -> InProcessClient:
        plan = self._plan
        # This runner only stores tasks: it never offers to run any.
        tasks = TaskRunner(current, "") if plan.is_task else None
        adapters = replace(current.adapters, tasks=tasks)
        copy = plan.copy
        put_copy = None if copy is None else copy.catalog_overlay(current.catalogs)
        if plan.is_dry:
            self._dry_run = DryRunUserCode(adapters.user_code, adapters.limits)
            adapters = self._dry_run.adapters_for_trial(adapters)

        def overlay(catalog: Catalog) -> Catalog:
            if put_copy is not None:
                catalog = put_copy(catalog)
            if plan.row is not None:
                catalog = plan.row.restrict_catalog(catalog, plan.method, plan.params)
            return _with_less_time(plan, adapters.limits, catalog)

        return InProcessClient(
            current,
            plan.server,
            plan.caller,
            overlay=overlay,
            adapters=adapters,
            streams=plan.streams,
            respond=self._answer_question,
            observe=self._note_message,
        )

    async def finish_trial(self, client: InProcessClient) -> Trial:
        plan, latest = self._plan, list[Occurred]()
        if plan.topic:
            outbox = process().events
            # Events that were just written get their numbers by this.
            outbox.mark_stale()
            await outbox.current_state(plan.topic)
            latest = [*await outbox.load_latest(plan.topic, LATEST_EVENTS)]
        if latest:
            # The cursor stands before the first of these events.
            number = latest[0].number - 1
            cursor = Cursor(plan.server, LISTING, number, plan.params["name"])
            sealed = seal_cursor(cursor, process().adapters.cursor_keys[0])
            begin = {"cursor": sealed, "maxEvents": LATEST_EVENTS}
            plan = replace(plan, params={**plan.params, **begin})
        began = time.monotonic()
        try:
            text = await client.send_request(plan.method, plan.params)
        except SessionRefused as refused:
            text = refused.answer
        took = time.monotonic() - began
        answer: dict[str, Any] = json.loads(text)
        result = answer.get("result", {})
        requests: dict[str, Any] = result.get("inputRequests", {})
        required = (
            Question(each["method"], each.get("params", {}), name)
            for name, each in requests.items()
        )
        # A call that is refused before it runs has no outcome of its own.
        refusal = client.refusal
        status = 0 if refusal is None else status_of(refusal)
        run = client.run if refusal is None else None
        return Trial(
            # A fault has no status with which clients are turned away.
            refused=status if status >= HTTPStatus.BAD_REQUEST else 0,
            reason="" if refusal is None else refusal.message,
            messages=tuple(self._messages),
            answer=answer,
            size=len(text),
            took_ms=took * 1_000,
            outcome=run.ending.outcome if run else Outcome.FAILED,
            failure=run.ending.failure if run else "",
            questions=(*self._open_questions, *required),
            state=result.get("requestState", ""),
            occurrences=len(latest),
            dry_run=None if self._dry_run is None else self._dry_run.outcome,
        )

    def _note_message(self, message: Message) -> None:
        self._messages.append(message)
        self._observe(message)

    def _answer_question(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a question of a session; without an answer it is shown afterwards."""
        question = Question(method, params)
        if (answer := self._plan.answers.get(question.answer_key)) is not None:
            rejected = is_rejected(method, answer)
            return decline_question(method, params) if rejected else answer
        self._open_questions.append(question)
        return decline_question(method, params)


def _with_less_time(plan: Plan, limits: Limits, catalog: Catalog) -> Catalog:
    """Return a catalog in which a dry run has no more time than it may take."""
    changes: dict[str, dict[str, Entry[Any, Any] | None]] = {}
    if plan.is_dry:
        for name, entry in answering_entries(catalog, plan.method, plan.params):
            if any(entry is offered for offered in catalog.offered[name]):
                changes.setdefault(name, {})[entry.identity] = limit_time(entry, limits)
    return catalog.with_changes(changes)
