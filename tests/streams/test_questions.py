"""Questions that wait for an answer, which comes to any process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from django.db import OperationalError, transaction

from mcp_app.interface.context import Client
from mcp_app.interface.errors import ClientRefused
from mcp_app.models import Change, Question, Session
from mcp_app.models.questions import FORGOTTEN, QUESTION
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.streams import questions
from mcp_app.streams.log_writer import Beside
from mcp_app.streams.open_session import OpenSession
from mcp_app.streams.questions import AnswerStatus, OpenQuestions, StoredQuestion
from tests.statements import counted
from tests.streams.logging_rows import erase, events, opened, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

PATIENCE_S: Final = 60


def known(pk: int) -> OpenSession:
    return OpenSession(
        pk=pk,
        digest="d",
        principal_key="",
        server="default",
        revision=REVISIONS["2025-11-25"],
        client=Client(),
    )


@pytest.fixture
async def session() -> AsyncIterator[OpenSession]:
    yield known((await writer.run(own_session)).pk)
    await writer.run(_erase)


def _erase() -> None:
    Question.objects.all().delete()
    Change.objects.all().delete()
    erase()


@pytest.fixture
def here() -> OpenQuestions:
    return OpenQuestions()


@pytest.fixture
def elsewhere() -> OpenQuestions:
    return OpenQuestions()


async def asked(
    questions: OpenQuestions, session: OpenSession, identifier: str
) -> StoredQuestion:
    """Ask, and commit what belongs to the message."""
    made = questions.expect_answer(session, identifier)

    def commit() -> None:
        with transaction.atomic():
            made.beside.write("default")

    await writer.run(commit)
    return made


async def told() -> list[str]:
    rows = Change.objects.filter(kind=QUESTION).values_list("ref", flat=True)
    return list(await reader.run(list, rows))


async def test_an_answer_at_another_process(
    here: OpenQuestions, elsewhere: OpenQuestions, session: OpenSession
) -> None:
    question = await asked(here, session, "a")
    assert await elsewhere.take(session, "a", {"action": "accept"}, None)
    assert await told() == ["a"]
    assert not question.answer.done()
    await here.resolve_stored(["a", "another's"])
    assert await question.answer == {"action": "accept"}
    await here.resolve_stored(["a"])


async def test_an_error_is_a_refusal(here: OpenQuestions, session: OpenSession) -> None:
    question = await asked(here, session, "a")
    error = {"code": -1, "message": "The person left."}
    assert await here.take(session, "a", None, error)
    with pytest.raises(ClientRefused, match=r"error -1: The person left\."):
        await question.answer


@pytest.mark.parametrize("identifier", ["b", 7, "a "])
async def test_an_answer_to_nothing(
    here: OpenQuestions, session: OpenSession, identifier: str | int
) -> None:
    question = await asked(here, session, "a")
    assert not await here.take(session, identifier, {}, None)
    assert not question.answer.done()


async def test_answers_to_nothing_take_no_writer_and_few_statements(
    here: OpenQuestions, elsewhere: OpenQuestions, session: OpenSession
) -> None:
    """Of a program in a loop: everybody's sessions wait for the one writer."""
    await asked(here, session, "late")
    assert await here.take(session, "late", {"n": 0}, None) is AnswerStatus.FIRST
    here.forget_question("late")
    names = [f"q{number}" for number in range(300)] + ["late"] * 300
    async with counted() as statements:
        taken = await asyncio.gather(
            *(elsewhere.take(session, each, {"n": 1}, None) for each in names)
        )
    assert taken == [AnswerStatus.UNKNOWN] * 300 + [AnswerStatus.LATE] * 300
    assert 0 < len(statements) <= 4, statements
    async with counted([writer]) as statements:
        await elsewhere.take(session, "late", {"n": 1}, None)
    assert statements == []


async def test_many_answers_to_one_question_are_stored_together(
    here: OpenQuestions, session: OpenSession
) -> None:
    question = await asked(here, session, "a")
    async with counted([writer]) as statements:
        taken = await asyncio.gather(
            *(here.take(session, "a", {"n": number}, None) for number in range(300))
        )
    assert taken == [AnswerStatus.FIRST] + [AnswerStatus.LATE] * 299
    assert await question.answer == {"n": 0}
    # A batch may have begun when the others came.
    assert len(statements) <= 20, statements


async def test_an_answer_from_another_session(
    here: OpenQuestions, session: OpenSession
) -> None:
    question = await asked(here, session, "a")
    other = known((await writer.run(own_session)).pk)
    assert not await here.take(other, "a", {}, None)
    assert not question.answer.done()


async def test_the_first_answer_counts_wherever_it_came(
    here: OpenQuestions, elsewhere: OpenQuestions, session: OpenSession
) -> None:
    question = await asked(here, session, "a")
    assert await elsewhere.take(session, "a", {"first": 1}, None)
    assert await here.take(session, "a", {"second": 2}, None)
    assert await question.answer == {"first": 1}
    here.forget_question("a")
    assert await here.take(session, "a", {"late": 3}, None)
    assert await told() == ["a"]


async def test_an_answer_whose_request_breaks_off_is_found_by_the_next_look(
    here: OpenQuestions, session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = await asked(here, session, "a")

    def away(_: object) -> None:
        raise OperationalError("The database is away.")

    with monkeypatch.context() as outage:
        outage.setattr(questions, "_answers", away)
        with pytest.raises(Unavailable):
            await here.take(session, "a", {"action": "accept"}, None)
    await here.resolve_stored([])
    assert question.answer.done()
    assert await question.answer == {"action": "accept"}
    # From now on there is nothing to be read.
    here.forget_question("a")
    monkeypatch.setattr(questions, "_answers", away)
    await here.resolve_stored([])


async def test_an_answer_whose_client_leaves_is_found_by_the_next_look(
    here: OpenQuestions, session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = await asked(here, session, "a")
    stored, goes_on, answer = threading.Event(), threading.Event(), questions._answer

    def slowly(*arguments: Any) -> bool:
        known = answer(*arguments)
        stored.set()
        assert goes_on.wait(PATIENCE_S)
        return known

    monkeypatch.setattr(questions, "_answer", slowly)
    taking = asyncio.ensure_future(here.take(session, "a", {"action": "accept"}, None))
    assert await asyncio.to_thread(stored.wait, PATIENCE_S)
    taking.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await here.resolve_stored([])
    assert question.answer.done()


@pytest.mark.parametrize("value", [{"text": "a\x00b 𝄞"}, {}, {"n": None}])
async def test_answers_come_as_they_were_given(
    here: OpenQuestions, session: OpenSession, value: Any
) -> None:
    question = await asked(here, session, "a")
    assert await here.take(session, "a", value, None)
    assert await question.answer == value


async def test_which_are_open(here: OpenQuestions, session: OpenSession) -> None:
    await asked(here, session, "a")
    await asked(here, session, "b")
    here.forget_question("a")
    here.forget_question("unknown")
    assert here.open_identifiers == {"b"}


def test_ids_of_questions_are_not_guessed() -> None:
    own = known(1)
    identifiers = {own.next_question_id() for _ in range(100)}
    assert len(identifiers) == 100
    assert all(len(each) >= 16 for each in identifiers)


@pytest.mark.parametrize("name", ["a\x00b", "a" * 65, "\ud800", "a\nb", ""])
async def test_ids_that_nobody_gives(
    here: OpenQuestions, session: OpenSession, name: str
) -> None:
    """Some databases cannot even look for them."""
    await asked(here, session, "a")
    assert not await here.take(session, name, {}, None)


async def test_an_answer_as_deep_as_a_body_may_be(
    here: OpenQuestions, session: OpenSession
) -> None:
    value: Any = {}
    for _ in range(100):
        value = {"deeper": [value]}
    question = await asked(here, session, "a")
    assert await here.take(session, "a", value, None)
    assert await question.answer == value


@pytest.mark.parametrize("instead", [None, b"over"])
async def test_once_a_call_is_over_its_questions_are_forgotten(
    here: OpenQuestions,
    elsewhere: OpenQuestions,
    session: OpenSession,
    instead: bytes | None,
) -> None:
    row = await reader.run(Session.objects.get, pk=session.pk)
    key = await writer.run(opened, row, b"first", b"second")
    rows = [here.expect_answer(session, each, instead).beside for each in "ab"]
    await writer.run(_write, rows)
    assert await here.take(session, "a", {"answer": "secret"}, None)
    for each in rows:
        assert each.erase is not None
        await writer.run(each.erase, "default", key, 2)
    assert await elsewhere.take(session, "b", {"answer": "too late"}, None)
    answers = Question.objects.values_list("answer", flat=True)
    assert await reader.run(list, answers) == [FORGOTTEN] * 2
    second = "second" if instead is None else "over"
    assert await reader.run(events, key) == [(1, "first"), (2, second)]
    # Nobody who still waits takes that for an answer.
    await here.resolve_stored(["a", "b"])
    assert here.open_identifiers == {"a", "b"}
    assert await told() == []


def _write(rows: list[Beside]) -> None:
    with transaction.atomic():
        for each in rows:
            each.write("default")
