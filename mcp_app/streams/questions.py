"""Questions of the stateful era that wait for an answer, here or in another process."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple

from django.db import router, transaction
from django.db.models import Case, When

from mcp_app.interface.errors import ClientRefused
from mcp_app.models import Event, Question
from mcp_app.models.questions import FORGOTTEN, QuestionQuerySet
from mcp_app.pools.batching import Batches
from mcp_app.pools.database import lookups, reader, writer
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession

MAX_ID_LENGTH: Final = 64
"""Longest id of a question, in characters."""
OUR_OWN: Final = jsonrpc.ReadLimits(depth=sys.maxsize, nodes=sys.maxsize)
"""No limits: a stored answer was within the limits when it arrived."""


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """The future of an answer, and `beside`, the question's row."""

    answer: asyncio.Future[JsonObject]
    beside: Beside


class AnswerStatus(IntEnum):
    """What became of an answer; false if there was no such question."""

    UNKNOWN = 0
    LATE = 1
    """The question has an answer, or nobody waits for one any more."""
    FIRST = 2


class QuestionKey(NamedTuple):
    """A question, by the key of its session and its own id."""

    session: int
    identifier: str


class Answer(NamedTuple):
    """A reply to a question; `tell` says that another process waits for it."""

    question: QuestionKey
    text: str
    tell: bool


class OpenQuestions:
    """Futures by request id; used on the loop only."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[JsonObject]] = {}
        self._coming: Counter[str] = Counter()
        """How many answers arrived here that may or may not be stored, by question."""
        self._lookups = Batches(lookups, _waiting_by_key)
        self._answers = Batches(writer, _store_answers)

    @property
    def open_identifiers(self) -> frozenset[str]:
        return frozenset(self._waiting)

    def expect_answer(
        self, session: OpenSession, identifier: str, instead: bytes | None = None
    ) -> StoredQuestion:
        """Wait for the answer to a question of a session.

        The answer is forgotten once the call is over.  Then `instead`, if it is given,
        takes the place of the question in the replay log.
        """
        future: asyncio.Future[JsonObject]
        future = asyncio.get_running_loop().create_future()
        self._waiting[identifier] = future
        key = session.pk, identifier
        rows = Beside(
            partial(_insert_question, *key), partial(_erase_question, *key, instead)
        )
        return StoredQuestion(future, rows)

    def forget_question(self, identifier: str) -> None:
        """Stop waiting; a late answer is accepted and dropped."""
        self._waiting.pop(identifier, None)
        self._coming.pop(identifier, None)

    async def take(
        self,
        session: OpenSession,
        identifier: str | int,
        result: JsonObject | None,
        error: JsonObject | None,
    ) -> AnswerStatus:
        name = str(identifier)
        if len(name) > MAX_ID_LENGTH or not name.isprintable():
            # No question has such an id, and not every database can look for it.
            return AnswerStatus.UNKNOWN
        key = QuestionKey(session.pk, name)
        waits_here = self._is_waiting(name)
        if waits_here:
            # No change row tells of this answer: if its write fails,
            # `resolve_stored` finds out whether it was stored.
            self._coming[name] += 1
        # Programs may answer unknown questions, or answer again and again: only a
        # possible first answer uses the writer.
        elif not (waits := await self._lookups.load_value(key)):
            return AnswerStatus.UNKNOWN if waits is None else AnswerStatus.LATE
        reply = {"result": result} if error is None else {"error": error}
        text = jsonrpc.write(reply).decode()
        stored_text = await self._answers.load_value(
            Answer(key, text, tell=not waits_here)
        )
        if stored_text and waits_here:
            self._resolve_all({name: stored_text})
        self._coming -= Counter({name: waits_here})
        if stored_text is None:
            return AnswerStatus.UNKNOWN
        return AnswerStatus.FIRST if stored_text == text else AnswerStatus.LATE

    async def resolve_stored(self, identifiers: Collection[str]) -> None:
        """Resolve the questions that wait here with their stored answers.

        The first answer counts, whichever process received it.  Questions whose
        answers arrived here, but may not be stored, are looked up, too.
        """
        names = self._waiting.keys() & {*identifiers, *self._coming}
        answers = await reader.run(_answers, names) if names else {}
        self._resolve_all(answers)

    def _resolve_all(self, answers: Mapping[str, str]) -> None:
        for identifier, text in answers.items():
            if self._is_waiting(identifier):
                self._resolve_question(identifier, jsonrpc.read(text.encode(), OUR_OWN))

    def _is_waiting(self, identifier: str) -> bool:
        future = self._waiting.get(identifier)
        return future is not None and not future.done()

    def _resolve_question(self, identifier: str, reply: Any) -> None:
        if not self._is_waiting(identifier):
            return
        future = self._waiting[identifier]
        if "error" in reply:
            code, message = map(reply["error"].get, ("code", "message"))
            reason = f"The client answered with error {code}: {message}"
            future.set_exception(ClientRefused(reason))
        else:
            future.set_result(reply["result"])


def _insert_question(session: int, identifier: str, using: str) -> None:
    Question.objects.using(using).ask(session, identifier)


def _erase_question(
    session: int, identifier: str, instead: bytes | None, using: str, key: int, seq: int
) -> None:
    Question.objects.using(using).erase(session, identifier)
    if instead is not None:
        Event.objects.using(using).replace(key, seq, instead.decode())


def _waiting_by_key(keys: list[QuestionKey]) -> dict[QuestionKey, bool]:
    rows = _current_questions().filter(rpc_id__in={key.identifier for key in keys})
    waits = Case(When(answer="", then=True), default=False)
    values = rows.values_list("session_id", "rpc_id", waits)
    return {QuestionKey(session, name): bool(waits) for session, name, waits in values}


def _store_answers(answers: list[Answer]) -> dict[Answer, str]:
    """Store first answers; return the one that counts, "" after the call is over."""
    firsts: dict[QuestionKey, Answer] = {}
    for answer in answers:
        firsts.setdefault(answer.question, answer)
    stored_keys = {key for key, each in firsts.items() if _answer(each)}
    texts = _answers({each.identifier for each in stored_keys})
    return {
        answer: texts.get(answer.question.identifier, "")
        for answer in answers
        if answer.question in stored_keys
    }


def _answer(answer: Answer) -> bool:
    rows = _current_questions()
    with transaction.atomic(using=rows.db):
        return rows.answer(*answer.question, answer.text, tell=answer.tell)


def _answers(identifiers: Collection[str]) -> Mapping[str, str]:
    rows = _current_questions().filter(rpc_id__in=identifiers)
    answered = rows.exclude(answer__in=["", FORGOTTEN])
    return dict(answered.values_list("rpc_id", "answer"))


def _current_questions() -> QuestionQuerySet:
    """Return the questions as they are now: a replica may not have them yet."""
    return Question.objects.using(router.db_for_write(Question))
