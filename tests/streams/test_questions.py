"""Questions that wait for an answer."""

from __future__ import annotations

import pytest

from mcp_app.interface.context import Client
from mcp_app.interface.errors import ClientRefused
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.streams.questions import OpenQuestions
from mcp_app.streams.sessions import ANSWERED_KEPT, OpenSession


def session(digest: str = "one") -> OpenSession:
    return OpenSession(
        pk=1,
        digest=digest,
        principal_key="",
        server="default",
        revision=REVISIONS["2025-11-25"],
        client=Client(),
        level=None,
        initialized=True,
        created_ms=0,
        seen_ms=0,
        uris={},
    )


async def test_an_answer_comes_to_who_asked() -> None:
    register, own = OpenQuestions(), session()
    first = register.expect(own, "a")
    second = register.expect(own, "b")
    assert register.answer(own, "b", {"action": "decline"}, None)
    assert await second == {"action": "decline"}
    assert not first.done()


async def test_an_error_is_a_refusal() -> None:
    register, own = OpenQuestions(), session()
    asked = register.expect(own, "a")
    error = {"code": -1, "message": "The person left."}
    assert register.answer(own, "a", None, error)
    with pytest.raises(ClientRefused, match=r"error -1: The person left\."):
        await asked


@pytest.mark.parametrize("identifier", ["b", 7, "a "])
async def test_an_answer_to_nothing(identifier: str | int) -> None:
    register, own = OpenQuestions(), session()
    register.expect(own, "a")
    assert not register.answer(own, identifier, {}, None)


async def test_an_answer_from_another_session() -> None:
    register, own = OpenQuestions(), session()
    asked = register.expect(own, "a")
    assert not register.answer(session("two"), "a", {}, None)
    assert not asked.done()


async def test_a_second_and_a_late_answer_are_taken_and_dropped() -> None:
    register, own = OpenQuestions(), session()
    asked = register.expect(own, "a")
    assert register.answer(own, "a", {"first": 1}, None)
    assert register.answer(own, "a", {"second": 2}, None)
    assert await asked == {"first": 1}
    register.forget(own, "a")
    assert register.answer(own, "a", {"late": 3}, None)


async def test_what_was_answered_is_remembered_for_a_while() -> None:
    register, own = OpenQuestions(), session()
    for number in range(ANSWERED_KEPT + 1):
        register.expect(own, str(number))
        register.forget(own, str(number))
    assert not register.answer(own, "0", {}, None)
    assert register.answer(own, "1", {}, None)


def test_ids_of_questions_are_not_guessed() -> None:
    own = session()
    identifiers = {own.next_question_id() for _ in range(100)}
    assert len(identifiers) == 100
    assert all(len(each) >= 16 for each in identifiers)
