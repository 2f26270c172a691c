"""The Context that user code gets: one core with an async and a blocking face."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_app.interface.context import (
    MAX_RECONNECT_DELAY_S,
    Answer,
    Context,
    Level,
    Queued,
    SyncContext,
    User,
)
from mcp_app.interface.errors import CallCancelled
from mcp_app.interface.log_secrets import log_secrets
from mcp_app.interface.questions import (
    Elicit,
    ElicitUrl,
    Question,
    Roots,
    Sample,
    SamplingMessage,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import notification_message
from mcp_app.protocol.events import cause_of
from mcp_app.protocol.negotiation import LOG_LEVEL
from mcp_app.server.questions import note_deprecated_use
from mcp_app.server.request import SEVERITY
from mcp_app.server.round_trip import CallClock, InputRequired, RoundTrip, TaskStarted
from mcp_app.server.run import End, Run
from mcp_app.server.throttle import NotificationThrottle

if TYPE_CHECKING:
    from mcp_app.catalog.runnable import Runnable

Value = TypeVar("Value")

DEFAULT_LEVEL = SEVERITY["info"]
"""The log level of a session that never set one."""

_TIME = {"run", "clock"}
"""The attributes of a core of which user code has used nothing but its clock."""

current_call: ContextVar[Run | None] = ContextVar("mcp_call", default=None)
"""The current call; its client may get forwarded records of `logging`."""


def cause_of_call() -> str:
    """Return the digest of the current caller; "" for strangers, or without a call."""
    run = current_call.get()
    if run is None or run.principal.anonymous:
        return ""
    return cause_of(run.principal.key)


def reset_current_call(token: Token[Run | None]) -> None:
    """Reset `current_call`, even if the call ends in another context than it began.

    This happens to a coroutine that is left over when the loop is closed.
    """
    with suppress(ValueError):
        current_call.reset(token)


def call_core_of(run: Run) -> CallCore:
    """Return the core of a running call; made on first use."""
    core: CallCore | None = run.core
    if core is None:
        core = run.core = CallCore(run)
    return core


class CallCore:
    """What both faces share; usable from any thread and any loop."""

    _question_count = 0
    _last_progress: float | None = None
    _over = False

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def clock(self) -> CallClock:
        """The clock of the call; made on first use."""
        run = self.run
        expired = partial(run.stop, End.TIMED_OUT)
        loop = run.request.adapters.loop
        began = run.began or loop.time()
        return CallClock(loop, run.seconds, expired, began)

    @property
    def is_idle(self) -> bool:
        """Whether user code has used nothing of the core but its clock."""
        # A cached property is an attribute once it is used.
        return self.__dict__.keys() <= _TIME

    @cached_property
    def visits(self) -> dict[str, str]:
        """Ids of the URL elicitations that the person agreed to, by their keys."""
        return {}

    def close(self) -> None:
        """End the core, and break its reference cycle."""
        if self._last_progress is not None and self.run.end is None:
            # The rate limit may hold back the last progress: send it now.
            self._progress_throttle.send_delayed(self.run.reply.send)
        if "clock" in self.__dict__:
            self.clock.close()
        self.run.core = None
        self._over = True

    @cached_property
    def round_trip(self) -> RoundTrip:
        """The questions and steps of the call."""
        return RoundTrip(self.run, self.clock, self.visits)

    @property
    def needed_input(self) -> InputRequired | TaskStarted | None:
        """The exception to end with: a question has no answer, or a task goes on."""
        return self.round_trip.needed if "round_trip" in self.__dict__ else None

    @cached_property
    def _progress_throttle(self) -> NotificationThrottle:
        return NotificationThrottle(self.run.request.adapters.limits)

    @cached_property
    def _log_throttle(self) -> NotificationThrottle:
        return NotificationThrottle(self.run.request.adapters.limits)

    @property
    def _least_level(self) -> int | None:
        """The least severe level that the client wants, None for no message."""
        run = self.run
        if "notifications/message" not in run.request.revision.notifications:
            return None
        if run.request.revision.log_level_per_request:
            return SEVERITY.get(str(run.request.meta.get(LOG_LEVEL)))
        level = run.request.session.level if run.request.session is not None else None
        return DEFAULT_LEVEL if level is None else level

    def is_on_loop(self) -> bool:
        """Whether this is the thread of the process's loop."""
        return threading.get_ident() == self.run.request.adapters.thread

    def check_running(self) -> None:
        """Raise `CallCancelled` if the call was ended."""
        if self.run.end is not None:
            raise CallCancelled(f"This call has ended: {self.run.end.value}.")

    def check_open(self) -> None:
        """Raise if the call was ended or is over."""
        self.check_running()
        if self._over:
            message = "This call has ended, so its context can no longer be used."
            raise RuntimeError(message)

    def send_log_message(self, level: Level, data: object, logger: str | None) -> None:
        """Queue a log message without its secrets.

        Raises ValueError for a level that does not exist, and for data without a JSON
        form.
        """
        if level not in SEVERITY:
            raise ValueError(
                f"{level!r} is not a level. Use one of {', '.join(SEVERITY)}."
            )
        if self._least_level is None or SEVERITY[level] < self._least_level:
            return
        note_deprecated_use(self.run.request.revision, "logging")
        data = log_secrets.remove_secrets(data)
        params: dict[str, object] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        message = jsonrpc.write(notification_message("notifications/message", params))
        # False: a message that comes too soon is dropped.
        offer = self._log_throttle.offer_message
        self._run_on_loop(offer, message, self.run.reply.send, False)

    def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Queue progress; a value that does not increase is left out."""
        run = self.run
        task_run = run.request.task
        if task_run is not None:
            self._run_on_loop(task_run.offer_progress, progress, total, message)
            return
        token = run.request.meta.get("progressToken")
        if token is None or not self._increases(progress):
            return
        self._last_progress = progress
        members = {"progressToken": token, "progress": progress}
        if total is not None:
            members["total"] = total
        if message is not None:
            members["message"] = message
        params = run.request.revision.known_members("progress", members)
        encoded = jsonrpc.write(notification_message("notifications/progress", params))
        # True: progress that comes too soon is sent later, unless there is newer one.
        offer = self._progress_throttle.offer_message
        self._run_on_loop(offer, encoded, run.reply.send, True)

    def _increases(self, progress: float) -> bool:
        return self._last_progress is None or progress > self._last_progress

    def complete_visit(self, key: str | None) -> None:
        """Tell the client that the visit with a key is over; None means all visits."""
        keys = list(self.visits) if key is None else [key]
        identifiers = [self.visits.pop(each, None) for each in keys]
        method = "notifications/elicitation/complete"
        for identifier in filter(None, identifiers):
            params = {"elicitationId": identifier}
            message = jsonrpc.write(notification_message(method, params))
            self._run_on_loop(self.run.reply.send, message)

    def announce_change(self, what: str) -> None:
        """Write and announce a change; returns at once."""
        server = self.run.request.catalog.server.slug
        self._run_on_loop(self.run.request.adapters.topics.tell, what, server)

    def reconnect(self, after: float) -> None:
        """Ask the client to reconnect later; raise ValueError for a bad time."""
        if not 0 < after <= MAX_RECONNECT_DELAY_S:
            raise ValueError(
                f"A client cannot come back after {after!r} seconds. Give more than 0"
                f" and at most {MAX_RECONNECT_DELAY_S:g}."
            )
        self._run_on_loop(self.run.reply.reconnect, math.ceil(after * 1000))

    def _run_on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        if self.is_on_loop():
            function(*arguments)
        else:
            self.run.request.adapters.post(function, *arguments)

    def question_key(self, key: str | None) -> str:
        """Return a question's key: as given, or `question_1` and so on."""
        self._question_count += 1
        return key if key is not None else f"question_{self._question_count}"

    @property
    def _asks_by_retry(self) -> bool:
        """Whether a question ends the run; the function then runs again from start."""
        run = self.run
        return run.request.revision.stateless or run.request.task is not None

    def become_task(self) -> None:
        """Go on as a task, if the call can be one; see `Context.as_task`."""
        self.check_open()
        run, entry = self.run, self.run.entry
        if (
            run.request.task is None
            and run.request.adapters.tasks is not None
            and entry is not None
            and getattr(entry.definition, "can_be_task", False)
            and run.request.takes_tasks
        ):
            self.round_trip.become_task()

    async def ask_on_any_loop(
        self, questions: Mapping[str, Question[Any]], timeout: float | None
    ) -> Mapping[str, Answer]:
        """Ask from any loop; wait on the loop of the process."""
        self.check_open()
        await self.run.request.adapters.user_code.refuse_in_outer_transaction()
        trip = self.round_trip
        if self._asks_by_retry:
            return await self._read_forms(
                questions, partial(trip.ask_by_retry, questions)
            )
        prepared = await self._read_forms(
            questions, partial(trip.prepare_all, questions)
        )
        on_loop = self.is_on_loop()
        waiting = trip.ask_on_stream(prepared, timeout, in_thread=not on_loop)
        with self.run.request.adapters.user_code.waiting():
            if on_loop:
                results = await waiting
            else:
                results = await asyncio.wrap_future(self._submit_to_loop(waiting))
        return await self._read_forms(
            questions, partial(trip.parse_results, prepared, results)
        )

    async def _read_forms(
        self, questions: Mapping[str, Question[Any]], function: Callable[[], Value]
    ) -> Value:
        """Call a function that reads forms: Django forms may query the database."""
        for question in questions.values():
            if isinstance(question, Elicit) and isinstance(question.form, type):
                return await self.in_thread(function)
        return function()

    async def in_thread(self, function: Callable[[], Value]) -> Value:
        """Run a blocking function in a thread of user code, from any loop."""
        return await self.run.request.adapters.user_code.call(self.run, function)

    def ask_blocking(
        self, questions: Mapping[str, Question[Any]], timeout: float | None
    ) -> Mapping[str, Answer]:
        """Ask from a pool thread; another thread may work meanwhile."""
        self.check_open()
        self.run.request.adapters.user_code.refuse_in_transaction()
        trip = self.round_trip
        if self._asks_by_retry:
            return trip.ask_by_retry(questions)
        prepared = trip.prepare_all(questions)
        waiting = trip.ask_on_stream(prepared, timeout, in_thread=True)
        with self.run.request.adapters.user_code.waiting():
            try:
                future = self._submit_to_loop(waiting)
                results = self.run.request.adapters.user_code.wait_for(future)
            except FutureCancelled:
                self.check_running()
                raise
        return trip.parse_results(prepared, results)

    def _submit_to_loop(self, waiting: Coroutine[Any, Any, Value]) -> Future[Value]:
        """Wait on the process's loop, no longer than the call lasts."""

        async def until_end() -> Value:
            task = asyncio.current_task()
            if task is not None:
                self.run.add_end_callback(task.cancel)
            return await waiting

        loop = self.run.request.adapters.loop
        return asyncio.run_coroutine_threadsafe(until_end(), loop)


class _Face:
    """What both faces share; `_ask_question` answers at once, or is awaited."""

    _ask_question: Callable[..., Any]

    def __init__(self, core: CallCore) -> None:
        request = core.run.request
        self._core = core
        self.principal = request.principal
        self.client = request.client
        self.revision = request.revision.version
        self.server = request.catalog.server.slug
        self.request_id = request.id

    def log(self, level: Level, data: object, logger: str | None = None) -> Queued:
        self._core.check_running()
        self._core.send_log_message(level, data, logger)
        return Queued()

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Queued:
        self._core.check_running()
        self._core.send_progress(progress, total, message)
        return Queued()

    def visited(self, key: str | None = None) -> None:
        self._core.check_running()
        self._core.complete_visit(key)

    def changed(self, what: str) -> None:
        self._core.check_running()
        self._core.announce_change(what)

    def reconnect(self, after: float) -> None:
        self._core.check_running()
        self._core.reconnect(after)

    def as_task(self) -> None:
        self._core.become_task()

    @property
    def task_id(self) -> str | None:
        task = self._core.run.request.task
        return None if task is None else task.record.public_id

    @property
    def cancelled(self) -> bool:
        return self._core.run.end is not None

    @property
    def deadline(self) -> float | None:
        return self._core.clock.seconds_left()

    def elicit(
        self,
        message: str,
        form: Any,
        *,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        return self._ask_question(key, Elicit(message, form), timeout)

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Any:
        return self._ask_question(key, ElicitUrl(message, url))

    def sample(
        self,
        messages: str | Sequence[SamplingMessage],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Any,
    ) -> Any:
        question = Sample(messages, max_tokens=max_tokens, **options)
        return self._ask_question(key, question)

    def list_roots(self, *, key: str | None = None) -> Any:
        return self._ask_question(key, Roots())


class AsyncFace(_Face, Context):
    """The face for async functions."""

    async def ask(self, **questions: Question[Any]) -> Mapping[str, Answer]:
        return await self._core.ask_on_any_loop(questions, None)

    async def _ask_question(
        self, key: str | None, question: Question[Any], timeout: float | None = None
    ) -> Answer:
        name = self._core.question_key(key)
        return (await self._core.ask_on_any_loop({name: question}, timeout))[name]

    async def once(
        self, key: str, function: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Any:
        self._core.check_open()
        step = self._core.round_trip.step_function(key, function, arguments, keywords)
        return await self._core.in_thread(step)

    async def user(self) -> User | None:
        self._core.check_open()
        return await self._core.in_thread(self._core.round_trip.read_user)


class SyncFace(_Face, SyncContext):
    """The face for sync functions: it blocks the thread that uses it."""

    def ask(self, **questions: Question[Any]) -> Mapping[str, Answer]:
        return self._core.ask_blocking(questions, None)

    def _ask_question(
        self, key: str | None, question: Question[Any], timeout: float | None = None
    ) -> Answer:
        name = self._core.question_key(key)
        return self._core.ask_blocking({name: question}, timeout)[name]

    def once(
        self, key: str, function: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Any:
        self._core.check_open()
        step = self._core.round_trip.step_function(key, function, arguments, keywords)
        return self._core.run.request.adapters.user_code.call_here(step)

    def user(self) -> User | None:
        self._core.check_open()
        user_code = self._core.run.request.adapters.user_code
        return user_code.call_here(self._core.round_trip.read_user)


def context_face_of(run: Run, runnable: Runnable[Any]) -> SyncFace | AsyncFace:
    """Return the Context that a function takes."""
    face = SyncFace if runnable.style == "sync" else AsyncFace
    return face(call_core_of(run))
