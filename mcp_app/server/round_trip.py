"""A call's questions to its client, and steps that must not run twice.

A round trip is the request of a session, or in the stateless era the chain of a
request and its retries, named by the sealed state.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

from mcp_app.interface.call_record import Ending, Outcome
from mcp_app.interface.context import Answer, User
from mcp_app.interface.errors import (
    ClientCannot,
    ClientRefused,
    TimedOut,
    TooManyQuestions,
)
from mcp_app.interface.questions import Accepted, Question
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import notification_message, request_message
from mcp_app.protocol.errors import InvalidParams, UrlElicitationRequired
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.conversation import (
    QUESTION_WITHDRAWN,
    Place,
    RequestState,
    state_binding,
)
from mcp_app.server.questions import PreparedQuestion, prepare_question
from mcp_app.server.request import Request
from mcp_app.server.run import End, Run

Value = TypeVar("Value")

logger = logging.getLogger("mcp_app.server")


# -- clock -----------------------------------------------------------------------------
# A call's time limit, paused while a question to the client is open.


class CallClock:
    """Calls `expired` on the loop when the seconds since `began` are used up.

    Time counts from `began`; the timer starts with `start_timer`.
    """

    __slots__ = ("_began", "_expired", "_handle", "_loop", "_open", "_seconds")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float | None,
        expired: Callable[[], None],
        began: float,
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expired = expired
        self._open = 0
        self._began: float | None = began
        self._handle: asyncio.TimerHandle | None = None

    def start_timer(self) -> None:
        """Make sure that `expired` is called when the time is used up."""
        seconds = self.seconds_left()
        if seconds is not None and self._began is not None and self._handle is None:
            self._handle = self._loop.call_later(seconds, self._expired)

    def pause_timer(self) -> None:
        """Pause; the remaining seconds are kept."""
        self._seconds = self.seconds_left()
        self._began = None
        self.close()

    def close(self) -> None:
        """Cancel the timer for good."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, None if there is no limit."""
        if self._seconds is None or self._began is None:
            return self._seconds
        return max(0.0, self._seconds - (self._loop.time() - self._began))

    @property
    def is_question_open(self) -> bool:
        """Whether a question is open."""
        return self._open > 0

    @contextmanager
    def pause_for_question(self) -> Iterator[None]:
        """Pause the clock; several questions may be open at once."""
        self._open += 1
        self.pause_timer()
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._began = self._loop.time()
                self.start_timer()


# -- round trip ------------------------------------------------------------------------


class InputRequired(BaseException):
    """The call needs answers: its request ends, and the client calls again.

    No `Exception`, so that a broad `except` in user code does not swallow it.
    """

    def __init__(self, questions: JsonObject, state: RequestState) -> None:
        super().__init__("The client must answer first.")
        self.questions = questions
        self.state = state
        self.ending = Ending(Outcome.ASKED)


def target_of(params: JsonObject) -> str:
    """Return the target of a request: a name or a URI."""
    return str(params.get("name", params.get("uri", "")))


def request_binding(request: Request) -> bytes:
    """Return the binding of this request's state."""
    return state_binding(
        request.principal.key,
        request.catalog.server.slug,
        request.method,
        target_of(request.params),
        request.params.get("arguments"),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def check_retry(request: Request) -> None:
    """Raise InvalidParams for a bad retry, before any user code runs.

    This holds even if the code asks nothing; a session has no retries.
    """
    params = request.params
    if request.session is not None:
        return
    if type(params.get("inputResponses", {})) is not dict:
        raise InvalidParams("params.inputResponses must be an object.")
    if "requestState" in params:
        open_state(request, params["requestState"])


def open_state(request: Request, sealed: object) -> RequestState:
    """Return the state that was sealed for this very request."""
    sealer = request.adapters.sealer
    return sealer.open_state(sealed, request_binding(request), now_ms())


class TaskStarted(BaseException):
    """The call goes on as a task (`ctx.as_task`); no `Exception`, as `InputRequired`.

    `state` has the answers so far.
    """

    def __init__(self, state: RequestState) -> None:
        super().__init__("The call goes on as a task.")
        self.state = state


class RoundTrip:
    """The questions and steps of one call."""

    def __init__(self, run: Run, clock: CallClock, visits: dict[str, str]) -> None:
        self._visits = visits
        self._run, self._request = run, run.request
        self._clock = clock
        self._answered: dict[str, tuple[str, JsonObject]] = {}
        """The digest of each question that was answered now, and its answer, by key."""
        self._used: set[str] = set()
        """The keys of questions whose answers user code has got."""
        self._open_questions: dict[str, PreparedQuestion] = {}
        self.needed: InputRequired | TaskStarted | None = None
        """The exception to end with: a question has no answer, or a task goes on."""

    @cached_property
    def request_state(self) -> RequestState:
        """The state in the retry, or a new round trip."""
        request = self._request
        if request.task is not None:
            return request.task.request_state
        session = request.session
        if session is not None and session.has_row:
            key = jsonrpc.canonical([session.digest, request.id])
            return RequestState(round_trip=sha256(key).hexdigest())
        sealed = None if session is not None else request.params.get("requestState")
        if sealed is None:
            # Without a row no request is repeated, and ids may be reused.
            return RequestState(round_trip=secrets.token_hex(16))
        return open_state(request, sealed)

    # -- the stateless era ------------------------------------------------------

    def ask_by_retry(
        self, questions: Mapping[str, Question[Any]]
    ) -> Mapping[str, Answer]:
        """Return the answers that the request brought, or end it with the questions."""
        self._check_may_ask()
        prepared = self.prepare_all(questions)
        answers = {each.key: self._delivered_answer(each) for each in prepared}
        open_questions = [each for each in prepared if answers[each.key] is None]
        if open_questions:
            self._look_for_urls(open_questions)
            self._open_questions.update((each.key, each) for each in open_questions)
            self.needed = self._input_required(list(self._open_questions.values()))
            raise self.needed
        self._used |= answers.keys()
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _check_may_ask(self) -> None:
        """Raise if a request may not end with questions (basic/patterns/mrtr)."""
        if self._request.task is not None:
            return
        method = self._request.method
        if method not in self._request.revision.input_required:
            raise ClientCannot(f"{method} cannot ask the client a question.", {})

    def _input_required(self, questions: Sequence[PreparedQuestion]) -> InputRequired:
        digests = {each.key: each.question_digest for each in questions}
        state = replace(self._collected_state(), open_digests=digests)
        requests = {each.key: each.input_request() for each in questions}
        return InputRequired(requests, state)

    def _collected_state(self) -> RequestState:
        earlier = self.request_state
        answered = {**earlier.answered, **self._answered}
        return RequestState(round_trip=earlier.round_trip, answered=answered)

    def become_task(self) -> NoReturn:
        """End the call, which goes on as a task."""
        self.needed = TaskStarted(self._collected_state())
        raise self.needed

    def _delivered_answer(self, question: PreparedQuestion) -> Answer | None:
        """Return an answer to this very question, None if there is none."""
        # An earlier answer comes with the digest of its question.
        earlier = self.request_state.answered.get(question.key)
        if earlier is not None and earlier[0] == question.question_digest:
            return question.parse(earlier[1])
        reply = self._request.params.get("inputResponses", {}).get(question.key)
        open_digest = self.request_state.open_digests.get(question.key)
        if open_digest is None:
            is_open = question.trusted_without_state
        else:
            is_open = open_digest == question.question_digest
        if not isinstance(reply, dict) or not is_open:
            return None
        try:
            answer = question.parse(reply)
        except ClientRefused:
            return None
        self._answered[question.key] = (question.question_digest, reply)
        return answer

    # -- the stateful era -------------------------------------------------------

    async def ask_on_stream(
        self,
        prepared: Sequence[PreparedQuestion],
        timeout: float | None,
        *,
        in_thread: bool,
    ) -> list[JsonObject]:
        """Send the questions on the stream of the call and wait for the answers.

        `in_thread` tells whether a thread waits for the answers, too.
        """
        self._check_way_back(prepared)
        adapters = self._request.adapters
        deadline = adapters.limits.question_deadline
        until = asyncio.timeout(min(timeout or deadline, deadline))
        place = Place(
            owner=self._request.owner,
            questions=len(prepared),
            # If the call waits for several questions, only the first counts here.
            in_thread=in_thread and not self._clock.is_question_open,
            give_up=partial(_expire_timeout, until),
        )
        with (
            adapters.places.hold_place(place),
            self._clock.pause_for_question(),
            self._record_questions(prepared),
        ):
            try:
                async with until:
                    return await self._wait_for_results(prepared)
            except TimeoutError:
                if place.is_withdrawn:
                    raise TooManyQuestions(QUESTION_WITHDRAWN) from None
                keys = ", ".join(each.key for each in prepared)
                raise TimedOut(f"The client did not answer {keys} in time.") from None

    def _record_questions(
        self, prepared: Sequence[PreparedQuestion]
    ) -> AbstractContextManager[None]:
        run = self._run
        tracing = self._request.adapters.tracing
        if tracing is None or run.span is None:
            return nullcontext()
        return tracing.record_questions(run.span, [each.method for each in prepared])

    def parse_results(
        self, prepared: Sequence[PreparedQuestion], results: Sequence[JsonObject]
    ) -> Mapping[str, Answer]:
        """Return the parsed answers by the questions' keys."""
        answers = {
            each.key: each.parse(result)
            for each, result in zip(prepared, results, strict=True)
        }
        self._used |= answers.keys()
        self._visits.update(
            (each.key, each.params["elicitationId"])
            for each in prepared
            if "elicitationId" in each.params
            and isinstance(answers[each.key], Accepted)
        )
        return answers

    async def _wait_for_results(
        self, prepared: Sequence[PreparedQuestion]
    ) -> list[JsonObject]:
        run, session = self._run, self._request.own_session
        self._look_for_urls(prepared)
        await self._request.adapters.sessions.wait_for_handshake(session)
        waiting: dict[str, asyncio.Future[JsonObject]] = {}
        # The stream ends with the call: cancel open questions before that.
        run.add_end_callback(partial(self._withdraw_open, waiting))
        try:
            for each in prepared:
                identifier = session.next_question_id()
                # This replaces a private question in the replay log.
                instead = _withdrawal(identifier) if each.private else None
                stored = self._request.adapters.questions.expect_answer(
                    session, identifier, instead
                )
                waiting[identifier] = stored.answer
                message = request_message(identifier, each.method, each.params or None)
                run.reply.send(jsonrpc.write(message), stored.beside)
            return await asyncio.gather(*waiting.values())
        finally:
            self._withdraw_open(waiting)

    def _withdraw_open(self, waiting: dict[str, asyncio.Future[JsonObject]]) -> None:
        """Forget the questions; cancel those that are open (utilities/cancellation).

        A client that has left is not told.
        """
        run = self._run
        has_left = run.end is End.CLIENT_GONE
        for identifier, answer in waiting.items():
            self._request.adapters.questions.forget_question(identifier)
            if _is_unanswered(answer) and not has_left:
                run.reply.send(_withdrawal(identifier))
        waiting.clear()

    def _check_way_back(self, prepared: Sequence[PreparedQuestion]) -> None:
        if self._run.reply.streams:
            return
        if urls := _url_elicitations(prepared):
            raise UrlElicitationRequired("This request needs a visit to a URL.", urls)
        why = "This site cannot keep a stream open for a client with a session (WSGI)"
        if self._request.streams:
            why = "The client accepts a single JSON answer only"
        raise ClientCannot(f"{why}, so it cannot be asked a question.", {})

    # -- both eras --------------------------------------------------------------

    def prepare_all(
        self, questions: Mapping[str, Question[Any]]
    ) -> list[PreparedQuestion]:
        """Put the questions into the form of the revision.

        Raises `ClientCannot` with every capability that the client lacks.  Raises
        ValueError for a key that was used: an answer is found by its question's key.
        """
        prepared: list[PreparedQuestion] = []
        refusals: list[ClientCannot] = []
        for key, question in questions.items():
            if key in self._used:
                raise ValueError(
                    f"This call has already used the key {key!r} for a question. Give"
                    " each question a key of its own."
                )
            try:
                prepared.append(
                    prepare_question(
                        key, question, self._request.revision, self._request.client
                    )
                )
            except ClientCannot as error:
                refusals.append(error)
        if refusals:
            required: JsonObject = {}
            for refusal in refusals:
                _merge_required(required, refusal.required)
            raise ClientCannot(" ".join(each.message for each in refusals), required)
        return prepared

    def _look_for_urls(self, prepared: Sequence[PreparedQuestion]) -> None:
        """Log which questions have a URL that a person might click."""
        entry = self._run.entry
        for each in prepared:
            if members := each.members_with_urls():
                logger.warning(
                    "A form question of %s has a URL in its %s. Clients need not show"
                    " it, and people should not click it: ask for a visit with"
                    " elicit_url().",
                    self._request.method if entry is None else entry.identity,
                    " and its ".join(members),
                )

    def step_function(
        self,
        key: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Callable[[], Any]:
        """Return a blocking function that runs a step once per round trip."""
        if asyncio.iscoroutinefunction(function):
            raise TypeError(
                f"once({key!r}) needs a sync function, because its result is stored"
                " in the transaction of the step."
            )
        steps = self._request.adapters.steps
        work = partial(function, *arguments, **keywords)
        return partial(steps.run_step_once, self.request_state.round_trip, key, work)

    def read_user(self) -> User | None:
        """Return the Django user, read once per call; blocks."""
        return self._user

    @cached_property
    def _user(self) -> User | None:
        return self._request.adapters.users.active_user(self._request.principal)


def _withdrawal(identifier: str) -> bytes:
    reason = "Nobody is waiting for the answer any more."
    params = {"requestId": identifier, "reason": reason}
    return jsonrpc.write(notification_message("notifications/cancelled", params))


def _expire_timeout(until: asyncio.Timeout) -> None:
    if not until.expired():
        until.reschedule(0)


def _url_elicitations(prepared: Sequence[PreparedQuestion]) -> list[JsonObject]:
    """Return the URL elicitations that error -32042 can name."""
    return [each.params for each in prepared if "elicitationId" in each.params]


def _is_unanswered(answer: asyncio.Future[JsonObject]) -> bool:
    """Whether the client has not answered: only its answer resolves the future."""
    return answer.cancelled() or not answer.done()


def _merge_required(into: JsonObject, other: JsonObject) -> None:
    for name, value in other.items():
        _merge_required(into.setdefault(name, {}), value)
