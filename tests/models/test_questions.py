"""Questions to clients: the first answer counts, and none that waits is over."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from mcp_app.models import Change, Once, Question, Session, Stream
from mcp_app.models.fields import digest
from mcp_app.models.questions import QUESTION
from tests.models.test_sessions import session

pytestmark = pytest.mark.django_db


@pytest.fixture
def own() -> Session:
    return session("own")


def told() -> list[str]:
    return [each.ref for each in Change.objects.filter(kind=QUESTION)]


def stream(own: Session, state: str, ended_ms: int | None) -> None:
    Stream.objects.create(
        session=own,
        public_id=f"{own.pk}-{state}",
        requests="1",
        state=state,
        owner="w",
        created_ms=0,
        ended_ms=ended_ms,
    )


def test_the_first_answer_counts(own: Session) -> None:
    Question.objects.ask(own.pk, "q")
    assert Question.objects.answer(own.pk, "q", "first", tell=True)
    # It was asked: whoever answers twice is told nothing.
    assert Question.objects.answer(own.pk, "q", "second", tell=True)
    assert Question.objects.get().answer == "first"
    assert told() == ["q"]


@pytest.mark.parametrize("tell", [True, False])
def test_an_answer_that_nobody_needs_is_no_change(own: Session, tell: bool) -> None:
    Question.objects.ask(own.pk, "q")
    Question.objects.answer(own.pk, "q", "yes", tell=tell)
    assert told() == (["q"] if tell else [])


def test_what_was_not_asked_is_not_answered(own: Session) -> None:
    other = session("other")
    Question.objects.ask(own.pk, "q")
    Question.objects.ask(other.pk, "another")
    with pytest.raises(IntegrityError), transaction.atomic():
        Question.objects.ask(own.pk, "q")
    assert not Question.objects.answer(other.pk, "q", "yes", tell=True)
    assert not Question.objects.answer(own.pk, "Q", "yes", tell=True)
    answers = Question.objects.values_list("answer", flat=True)
    assert (set(answers), told()) == ({""}, [])


@pytest.mark.parametrize(
    ("answer", "state", "ended_ms", "over"),
    [
        ("", "open", None, False),
        # It was answered: none waits.
        ("yes", "open", None, True),
        ("", "completed", 5, True),
        ("", "aborted", 5, True),
        ("", "", None, True),
    ],
)
def test_a_question_is_over_where_no_call_waits(
    own: Session, answer: str, state: str, ended_ms: int | None, over: bool
) -> None:
    if state:
        stream(own, state, ended_ms)
    stream(session("other"), "open", None)
    Question.objects.create(session=own, rpc_id="q", answer=answer, created_ms=9)
    assert Question.objects.over(10).exists() is over
    assert not Question.objects.over(9).exists()


# -- once ------------------------------------------------------------------------------


def test_a_key_is_done_once_per_round_trip() -> None:
    key, trips = digest(b"key"), (digest(b"1"), digest(b"2"))
    for trip, age in zip(trips, (1, 5), strict=True):
        Once.objects.create(round_trip=trip, key=key, result="3", created_ms=age)
    with pytest.raises(IntegrityError), transaction.atomic():
        Once.objects.create(round_trip=trips[0], key=key, result="2", created_ms=9)
    assert [row.created_ms for row in Once.objects.older_than(5)] == [1]
