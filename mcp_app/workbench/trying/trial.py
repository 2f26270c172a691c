"""One trial: a request of a client, from whoever was chosen, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Final

from mcp_app.catalog.snapshot import Catalog, Entry, TemplateEntry
from mcp_app.conf import Limits
from mcp_app.interface.outcomes import Outcome
from mcp_app.kinds import KindError
from mcp_app.process.current import process
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.transports.in_process import (
    Caller,
    InProcessClient,
    Message,
    SessionRefused,
    decline,
)
from mcp_app.transports.stdio.connection import Forbidden, NotServed, NotSignedIn
from mcp_app.workbench.trying.dry_run import DryRunUserCode, limit_time
from mcp_app.workbench.trying.dry_run_outcome import DryRunOutcome
from mcp_app.workbench.trying.offer import WorkingCopy
from mcp_app.workbench.trying.tried_row import TriedRow

FIRST_ERROR: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
SAMPLING: Final = "sampling/createMessage"
RANDOM: Final = frozenset({"_meta", "elicitationId"})
"""Members of a question that differ each time it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried.

    `answers` are the results of questions, by `Question.key`.  Without `streams` only
    the answer reaches the client.  Without `row` any definition may answer.
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
    """Whether what it changes in this site's databases is undone."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the server asks its client; `name` is its key in a request that is retried.

    `name` is "" in a session, where the question comes while the call runs.
    """

    method: str
    params: JsonObject
    name: str = ""

    @property
    def key(self) -> str:
        """What finds the answer, the next time that it is asked."""
        params = {
            member: value
            for member, value in self.params.items()
            if member not in RANDOM
        }
        asked = jsonrpc.canonical([self.method, params, self.name])
        return sha256(asked).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it; times are in milliseconds.

    `refused` is the HTTP status with which clients are turned away, 0 if they are not;
    `reason` then says why, and so it does for a working copy that cannot run.
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
    """Those without an answer."""
    state: str = ""
    """The sealed state that goes back with the answers."""
    refused: int = 0
    reason: str = ""
    dry_run: DryRunOutcome | None = None
    """What became of the changes; None if they stay."""

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


def is_rejected(method: str, answer: JsonObject) -> bool:
    """Whether an answer says that a model's is not given: no result can say that."""
    return method == SAMPLING and "action" in answer


Observe = Callable[[Message], object]


def _ignore(message: Message) -> None:
    """Do nothing."""


async def run(plan: Plan, observe: Observe = _ignore) -> Trial:
    """Try it, on the loop of the process; `observe` sees each message as it comes.

    If this is cancelled, so is the call.
    """
    current = process()
    run_ = _Run(plan, observe)
    try:
        client = run_.client(current)
        await client.check_served()
        return await run_.finish(client)
    except KindError as error:
        return Trial(reason=error.message, outcome=Outcome.FAILED)
    except ProtocolError as error:
        return Trial(refused=status_of(error), reason=error.message)


def status_of(error: ProtocolError) -> int:
    """Return the HTTP status with which a client is turned away."""
    if isinstance(error, NotSignedIn):
        return UNAUTHORIZED
    if isinstance(error, Forbidden):
        return FORBIDDEN
    return NOT_FOUND if isinstance(error, NotServed) else error.http_status


def _error_status(error: ProtocolError) -> int:
    """Return the HTTP status of a refusal; 0 for a fault, which has none."""
    status = status_of(error)
    return status if status >= FIRST_ERROR else 0


class _Run:
    """A trial while it runs."""

    def __init__(self, plan: Plan, observe: Observe) -> None:
        self._plan = plan
        self._observe = observe
        self._messages: list[Message] = []
        self._asked: list[Question] = []
        self._dry_run: DryRunUserCode | None = None

    def client(self, current: Process) -> InProcessClient:
        plan = self._plan
        overlay = (
            _unchanged if plan.copy is None else plan.copy.overlay(current.catalogs)
        )
        if plan.row is not None:
            overlay = partial(_of_row, plan, plan.row, overlay)
        adapters = current.adapters
        if plan.is_dry:
            self._dry_run = DryRunUserCode(adapters.user_code, adapters.limits)
            adapters = self._dry_run.within(adapters)
            overlay = partial(_with_less_time, plan, adapters.limits, overlay)
        return InProcessClient(
            current,
            plan.server,
            plan.caller,
            overlay=overlay,
            adapters=adapters,
            streams=plan.streams,
            respond=self._respond,
            observe=self._note,
        )

    async def finish(self, client: InProcessClient) -> Trial:
        plan, began = self._plan, time.monotonic()
        try:
            text = await client.request(plan.method, plan.params)
        except SessionRefused as refused:
            text = refused.answer
        took = time.monotonic() - began
        answer: dict[str, Any] = json.loads(text)
        result = answer.get("result", {})
        # What is refused before it runs has no outcome of its own.
        refusal = client.refusal
        exchange = client.exchange if refusal is None else None
        return Trial(
            refused=0 if refusal is None else _error_status(refusal),
            reason="" if refusal is None else refusal.message,
            messages=tuple(self._messages),
            answer=answer,
            size=len(text),
            took_ms=took * 1_000,
            outcome=Outcome(exchange.outcome) if exchange else Outcome.FAILED,
            failure=exchange.failure if exchange else "",
            questions=(*self._asked, *_required(result)),
            state=result.get("requestState", ""),
            dry_run=None if self._dry_run is None else self._dry_run.outcome,
        )

    def _note(self, message: Message) -> None:
        self._messages.append(message)
        self._observe(message)

    def _respond(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a question of a session; what has no answer is shown afterwards."""
        question = Question(method, params)
        answer = self._plan.answers.get(question.key)
        if answer is not None:
            rejected = is_rejected(method, answer)
            return decline(method, params) if rejected else answer
        self._asked.append(question)
        return decline(method, params)


def _unchanged(catalog: Catalog) -> Catalog:
    return catalog


def _of_row(
    plan: Plan, row: TriedRow, overlay: Callable[[Catalog], Catalog], catalog: Catalog
) -> Catalog:
    """Return the catalog in which only the row answers; raises `KindError`."""
    return row.within(overlay(catalog), plan.method, plan.params)


def _with_less_time(
    plan: Plan, limits: Limits, overlay: Callable[[Catalog], Catalog], catalog: Catalog
) -> Catalog:
    """Return the catalog with the time of a dry run for what is tried."""
    catalog = overlay(catalog)
    return catalog.changed(
        {
            name: {each.identity: limit_time(each, limits)}
            for name, each in _tried(plan, catalog)
        }
    )


def _tried(plan: Plan, catalog: Catalog) -> Iterator[tuple[str, Entry[Any, Any]]]:
    """Yield the list and the entry of what a request asks for, if it is offered."""
    if plan.method == "resources/read":
        match = next(catalog.matching(str(plan.params.get("uri", ""))), None)
        if match is not None and not match.stopped:
            is_template = isinstance(match.entry, TemplateEntry)
            yield ("templates" if is_template else "resources"), match.entry
        return
    name = {"tools/call": "tools", "prompts/get": "prompts"}.get(plan.method, "")
    entries: Mapping[str, Entry[Any, Any]] = getattr(catalog, name, {})
    entry = entries.get(str(plan.params.get("name", "")))
    if entry is not None:
        yield name, entry


def _required(result: JsonObject) -> list[Question]:
    """Return the questions of an `InputRequiredResult`."""
    requests: dict[str, Any] = result.get("inputRequests", {})
    return [
        Question(each["method"], each.get("params", {}), name)
        for name, each in requests.items()
    ]
