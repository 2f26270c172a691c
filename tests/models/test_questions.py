"""Questions to clients: the first answer counts, and none that waits is over."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from mcp_app.models import Change, Once, Question, Session, Stream
from mcp_app.models.fields import digest
from mcp_app.models.questions import QUESTION
from mcp_app.models.topics import COUNTER, Counter, Topic, ids_from_text, ids_to_text
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


# -- topics ----------------------------------------------------------------------------


@pytest.mark.django_db
def test_no_number_is_drawn_twice() -> None:
    Counter.objects.create(name="other", value=7)
    first = Counter.objects.draw()
    further = [Counter.objects.draw() for _ in range(3)]
    assert further == [first + 1, first + 2, first + 3]
    assert Counter.objects.get(name=COUNTER).value == first + 3
    assert Counter.objects.get(name="other").value == 7
    # An emptied table counts from one, and keeps no floor.
    Counter.objects.all().delete()
    assert [Counter.objects.draw(), Counter.objects.draw()] == [1, 2]
    assert Counter.objects.get().floor == 0


@pytest.mark.django_db
def test_a_kind_and_a_ref_are_one_topic() -> None:
    Topic.objects.create(kind="tool", ref="7", version=1, changed_ms=0)
    Topic.objects.create(kind="tool", ref="8", version=2, changed_ms=0)
    Topic.objects.create(kind="prompt", ref="7", version=3, changed_ms=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Topic.objects.create(kind="tool", ref="7", version=4, changed_ms=0)


def test_ids_as_text() -> None:
    for ids in ([], [7], [7, 12345678901], [-1, 0]):
        assert ids_from_text(ids_to_text(ids)) == set(ids)
    assert ids_to_text([]) == ""
    assert ids_from_text(" 3  3 ") == {3}
