"""Questions of the stateful era that wait for an answer, here or in another process."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.db import router, transaction

from mcp_app.interface.errors import ClientRefused
from mcp_app.models import Event, Question
from mcp_app.models.questions import FORGOTTEN
from mcp_app.pools.database import reader, writer
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession

MOST_ID: Final = 64
"""Longest id of a question, in characters."""
OUR_OWN: Final = jsonrpc.ReadLimits(depth=sys.maxsize, nodes=sys.maxsize)
"""No limits: a stored answer was within the limits when it arrived."""


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """The future of an answer, and `beside`, the question's row."""

    answer: asyncio.Future[JsonObject]
    beside: Beside


class OpenQuestions:
    """Futures by request id; used on the loop only."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[JsonObject]] = {}
        self._coming: Counter[str] = Counter()
        """How many answers arrived here that may or may not be stored, by question."""

    @property
    def open(self) -> frozenset[str]:
        """The ids of the waiting questions."""
        return frozenset(self._waiting)

    def expect(
        self, session: OpenSession, identifier: str, instead: bytes | None = None
    ) -> StoredQuestion:
        """Wait for the answer to a question of a session.

        The answer is forgotten once the call is over.  Then `instead`, if it is given,
        takes the place of the question in the replay log.
        """
        future: asyncio.Future[JsonObject]
        future = asyncio.get_running_loop().create_future()
        self._waiting[identifier] = future
        named = session.pk, identifier
        rows = Beside(partial(_ask, *named), partial(_erase, *named, instead))
        return StoredQuestion(future, rows)

    def forget(self, identifier: str) -> None:
        """Stop waiting; a late answer is accepted and dropped."""
        self._waiting.pop(identifier, None)
        self._coming.pop(identifier, None)

    async def take(
        self,
        session: OpenSession,
        identifier: str | int,
        result: JsonObject | None,
        error: JsonObject | None,
    ) -> bool:
        """Take an answer from a session; return False if there was no such question."""
        name = str(identifier)
        if len(name) > MOST_ID or not name.isprintable():
            # No question has such an id, and not every database can look for it.
            return False
        reply = {"result": result} if error is None else {"error": error}
        text = jsonrpc.write(reply).decode()
        here = name in self._waiting
        if here:
            # No change row tells of this: if the write fails from now on, `look` finds
            # out.
            self._coming[name] += 1
        known = await writer.run(_answer, session.pk, name, text, not here)
        if known and here:
            await self.look([name])
        self._coming -= Counter({name: here})
        return known

    async def look(self, identifiers: Collection[str]) -> None:
        """Resolve those of these questions that wait here with their stored answers.

        The first answer counts, at whichever process it arrived.  This includes
        questions whose answers may or may not have been stored.
        """
        own = self._waiting.keys() & {*identifiers, *self._coming}
        found = await reader.run(_answers, own) if own else {}
        for identifier, text in found.items():
            self._resolve(identifier, jsonrpc.read(text.encode(), OUR_OWN))

    def _resolve(self, identifier: str, reply: Any) -> None:
        future = self._waiting.get(identifier)
        if future is None or future.done():
            return
        if "error" in reply:
            future.set_exception(ClientRefused(_reason(reply["error"])))
        else:
            future.set_result(reply["result"])


def _ask(session: int, identifier: str, using: str) -> None:
    Question.objects.using(using).ask(session, identifier)


def _erase(
    session: int, identifier: str, instead: bytes | None, using: str, key: int, seq: int
) -> None:
    Question.objects.using(using).erase(session, identifier)
    if instead is not None:
        Event.objects.using(using).replace(key, seq, instead.decode())


def _answer(session: int, identifier: str, text: str, tell: bool) -> bool:
    using = router.db_for_write(Question)
    with transaction.atomic(using=using):
        questions = Question.objects.using(using)
        return questions.answer(session, identifier, text, tell=tell)


def _answers(identifiers: Collection[str]) -> Mapping[str, str]:
    rows = (
        Question.objects.using(router.db_for_write(Question))
        .filter(rpc_id__in=identifiers)
        .exclude(answer__in=["", FORGOTTEN])
    )
    return dict(rows.values_list("rpc_id", "answer"))


def _reason(error: JsonObject) -> str:
    return f"The client answered with error {error.get('code')}: {error.get('message')}"
