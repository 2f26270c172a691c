"""A call's questions to its client, and steps that must not run twice.

A round trip is the request of a session, or in the stateless era the chain of a
request and its retries, named by the sealed state.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

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
    TAKEN_BACK,
    AnsweredQuestions,
    Place,
    RequestState,
    binding,
)
from mcp_app.server.exchange import End, Exchange
from mcp_app.server.questions import PreparedQuestion, prepare

if TYPE_CHECKING:
    from mcp_app.server.clock import CallClock
    from mcp_app.streams.log_writer import Beside

Value = TypeVar("Value")

logger = logging.getLogger("mcp_app.server")


class InputRequired(BaseException):
    """The call needs answers: its request ends, and the client calls again.

    No `Exception`, so that a broad `except` in user code does not swallow it.
    """

    def __init__(self, questions: JsonObject, state: RequestState) -> None:
        super().__init__("The client must answer first.")
        self.questions = questions
        self.state = state


def target_of(params: JsonObject) -> str:
    """Return the target of a request: a name or a URI."""
    return str(params.get("name", params.get("uri", "")))


def bound_to(exchange: Exchange) -> bytes:
    """Return the binding of this request's state."""
    return binding(
        exchange.principal.key,
        exchange.catalog.server.slug,
        exchange.method,
        target_of(exchange.params),
        exchange.params.get("arguments"),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def check_retry(exchange: Exchange) -> None:
    """Raise InvalidParams for a bad retry, before any user code runs.

    This holds even if the code asks nothing; a session has no retries.
    """
    params = exchange.params
    if exchange.session is not None:
        return
    if type(params.get("inputResponses", {})) is not dict:
        raise InvalidParams("params.inputResponses must be an object.")
    if "requestState" in params:
        open_state(exchange, params["requestState"])


def open_state(exchange: Exchange, sealed: object) -> RequestState:
    """Return the state that was sealed for this very request."""
    return exchange.adapters.sealer.open(sealed, bound_to(exchange), now_ms())


class RoundTrip:
    """The questions and steps of one call."""

    def __init__(
        self, exchange: Exchange, clock: CallClock, visits: dict[str, str]
    ) -> None:
        self._visits = visits
        self._exchange = exchange
        self._clock = clock
        self._state: RequestState | None = None
        self._user: User | None = None
        self._user_read = False
        self._answered: dict[str, AnsweredQuestions] = {}
        self._used: set[str] = set()
        self._missing: dict[str, PreparedQuestion] = {}
        self.needed: InputRequired | None = None
        """The exception to end with, once a question has no answer."""

    @property
    def state(self) -> RequestState:
        """The state in the retry, or a new round trip."""
        if self._state is None:
            self._state = self._opened_state()
        return self._state

    def _opened_state(self) -> RequestState:
        exchange = self._exchange
        session = exchange.session
        if session is not None and session.has_row:
            request = jsonrpc.canonical([session.digest, exchange.request_id])
            return RequestState(round_trip=sha256(request).hexdigest())
        sealed = None if session is not None else exchange.params.get("requestState")
        if sealed is None:
            # Without a row no request is repeated, and ids may be reused.
            return RequestState(round_trip=secrets.token_hex(16))
        return open_state(exchange, sealed)

    # -- the stateless era ------------------------------------------------------

    def ask_by_retry(
        self, questions: Mapping[str, Question[Any]]
    ) -> Mapping[str, Answer]:
        """Return the answers that the request brought, or end it with the questions."""
        self._check_may_ask()
        prepared = self.prepare(questions)
        found = {each.key: self._brought(each) for each in prepared}
        missing = [each for each in prepared if found[each.key] is None]
        if missing:
            self._look_for_urls(missing)
            self._missing.update((each.key, each) for each in missing)
            self.needed = self._input_required(list(self._missing.values()))
            raise self.needed
        self._used |= found.keys()
        return {key: answer for key, answer in found.items() if answer is not None}

    def _check_may_ask(self) -> None:
        """Raise if a request may not end with questions (basic/patterns/mrtr)."""
        if self._exchange.method not in self._exchange.revision.input_required:
            raise ClientCannot(
                f"{self._exchange.method} cannot ask the client a question.", {}
            )

    def _input_required(self, missing: Sequence[PreparedQuestion]) -> InputRequired:
        state = RequestState(
            round_trip=self.state.round_trip,
            asked={each.key: each.digest for each in missing},
            answered={**self.state.answered, **self._answered},
        )
        return InputRequired({each.key: each.request() for each in missing}, state)

    def _brought(self, question: PreparedQuestion) -> Answer | None:
        """Return an answer to this very question, None if there is none."""
        earlier = self.state.answered.get(question.key)
        if earlier is not None and earlier.digest == question.digest:
            return question.parse(earlier.result)
        given = self._exchange.params.get("inputResponses", {}).get(question.key)
        if not isinstance(given, dict) or not self._answers(question):
            return None
        try:
            answer = question.parse(given)
        except ClientRefused:
            return None
        self._answered[question.key] = AnsweredQuestions(question.digest, given)
        return answer

    def _answers(self, question: PreparedQuestion) -> bool:
        asked = self.state.asked.get(question.key)
        if asked is None:
            return question.trusted_without_state
        return asked == question.digest

    # -- the stateful era -------------------------------------------------------

    async def ask_on_stream(
        self,
        prepared: Sequence[PreparedQuestion],
        timeout: float | None,
        *,
        in_thread: bool,
    ) -> list[JsonObject]:
        """Send the questions on the stream of the call and wait for the answers.

        `in_thread` tells whether a thread waits with it.
        """
        self._check_way_back(prepared)
        adapters = self._exchange.adapters
        deadline = adapters.limits.question_deadline
        until = asyncio.timeout(min(timeout or deadline, deadline))
        place = self._place(len(prepared), in_thread, until)
        with adapters.places.held(place), self._clock.standing():
            try:
                async with until:
                    return await self._results(prepared)
            except TimeoutError:
                if place.lost:
                    raise TooManyQuestions(TAKEN_BACK) from None
                keys = ", ".join(each.key for each in prepared)
                raise TimedOut(f"The client did not answer {keys} in time.") from None

    def _place(self, questions: int, in_thread: bool, until: asyncio.Timeout) -> Place:
        exchange = self._exchange
        return Place(
            owner=exchange.owner,
            questions=questions,
            # Of several at once the first one stands for the thread.
            in_thread=in_thread and not self._clock.stands,
            give_up=partial(_expire, until),
        )

    def read(
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

    async def _results(self, prepared: Sequence[PreparedQuestion]) -> list[JsonObject]:
        exchange, session = self._exchange, self._exchange.own_session
        self._look_for_urls(prepared)
        await exchange.adapters.sessions.opened(session)
        waiting: dict[str, asyncio.Future[JsonObject]] = {}
        # The stream ends with the call: cancel open questions before that.
        exchange.on_end(partial(self._withdraw, waiting))
        try:
            for each in prepared:
                identifier = session.next_question_id()
                instead = _withdrawal(identifier) if each.private else None
                asked = exchange.adapters.questions.expect(session, identifier, instead)
                waiting[identifier] = asked.answer
                self._send(identifier, each, asked.beside)
            return await asyncio.gather(*waiting.values())
        finally:
            self._withdraw(waiting)

    def _withdraw(self, waiting: dict[str, asyncio.Future[JsonObject]]) -> None:
        """Forget the questions; cancel those that are open (utilities/cancellation).

        A client that has left is not told.
        """
        exchange = self._exchange
        left = exchange.end is End.CLIENT_GONE
        for identifier, answer in waiting.items():
            exchange.adapters.questions.forget(identifier)
            if _is_open(answer) and not left:
                exchange.outgoing.send(_withdrawal(identifier))
        waiting.clear()

    def _send(
        self, identifier: str, question: PreparedQuestion, beside: Beside
    ) -> None:
        message = request_message(identifier, question.method, question.params or None)
        self._exchange.outgoing.send(jsonrpc.write(message), beside)

    def _check_way_back(self, prepared: Sequence[PreparedQuestion]) -> None:
        if self._exchange.outgoing.streams:
            return
        urls = _urls(prepared)
        if urls:
            raise UrlElicitationRequired("This request needs a visit to a URL.", urls)
        why = (
            "The client accepts a single JSON answer only"
            if self._exchange.streams
            else "This site cannot keep a stream open for a client with a session"
            " (WSGI)"
        )
        raise ClientCannot(f"{why}, so it cannot be asked a question.", {})

    # -- both -------------------------------------------------------------------

    def prepare(self, questions: Mapping[str, Question[Any]]) -> list[PreparedQuestion]:
        """Put the questions into the words of the revision.

        Raises `ClientCannot` with all that the client lacks, and ValueError for a key
        that was used: the answer to a question is found by its key.
        """
        exchange = self._exchange
        prepared: list[PreparedQuestion] = []
        refusals: list[ClientCannot] = []
        for key, question in questions.items():
            if key in self._used:
                raise ValueError(
                    f"This call has already used the key {key!r} for a question. Give"
                    " each question a key of its own."
                )
            try:
                found = prepare(key, question, exchange.revision, exchange.client)
                prepared.append(found)
            except ClientCannot as error:
                refusals.append(error)
        if refusals:
            raise _together(refusals)
        return prepared

    def _look_for_urls(self, prepared: Sequence[PreparedQuestion]) -> None:
        """Log which questions have a URL that a person might click."""
        entry = self._exchange.entry
        for each in prepared:
            if members := each.members_with_urls():
                logger.warning(
                    "A form question of %s has a URL in its %s. Clients need not show"
                    " it, and people should not click it: ask for a visit with"
                    " elicit_url().",
                    self._exchange.method if entry is None else entry.identity,
                    " and its ".join(members),
                )

    def step(
        self,
        key: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        named: Mapping[str, Any],
    ) -> Callable[[], Any]:
        """Return a blocking function that runs a step once per round trip."""
        if asyncio.iscoroutinefunction(function):
            raise TypeError(
                f"once({key!r}) needs a sync function, because its result is stored"
                " in the transaction of the step."
            )
        steps = self._exchange.adapters.steps
        work = partial(function, *arguments, **named)
        return partial(steps.once, self.state.round_trip, key, work)

    def user(self) -> User | None:
        """Return the Django user, read once per call; blocks."""
        if not self._user_read:
            self._user = self._exchange.adapters.users.user(self._exchange.principal)
            self._user_read = True
        return self._user


def _withdrawal(identifier: str) -> bytes:
    """Return the message that a question is open no more."""
    reason = "Nobody is waiting for the answer any more."
    params = {"requestId": identifier, "reason": reason}
    return jsonrpc.write(notification_message("notifications/cancelled", params))


def _expire(until: asyncio.Timeout) -> None:
    if not until.expired():
        until.reschedule(0)


def _urls(prepared: Sequence[PreparedQuestion]) -> list[JsonObject]:
    """Return the URL elicitations that error -32042 can name."""
    return [each.params for each in prepared if "elicitationId" in each.params]


def _is_open(answer: asyncio.Future[JsonObject]) -> bool:
    """Whether the client has not answered: nobody else resolves it."""
    return answer.cancelled() or not answer.done()


def _together(refusals: Sequence[ClientCannot]) -> ClientCannot:
    """Return one refusal that names everything that is missing."""
    required: JsonObject = {}
    for each in refusals:
        _merge(required, each.required)
    return ClientCannot(" ".join(each.message for each in refusals), required)


def _merge(into: JsonObject, other: JsonObject) -> None:
    for name, value in other.items():
        _merge(into.setdefault(name, {}), value)
