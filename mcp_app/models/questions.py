"""Questions to clients of sessions: rows, so that any process takes the answer."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.db.models.expressions import Combinable, CombinedExpression

from mcp_app.models.appends import OPEN
from mcp_app.models.changes import Change
from mcp_app.models.fields import DigestField, ExactCharField, JSONTextField
from mcp_app.models.streams import Stream
from mcp_app.models.transactions import NowMilliseconds

QUESTION = "question"
"""The kind of a change that says that a question was answered."""
FORGOTTEN = "-"
"""Stands in place of an answer that nobody waits for."""


class QuestionQuerySet(models.QuerySet["Question"]):
    def ask(self, session: int, rpc_id: str) -> None:
        """Note that a question is asked, in the transaction of its message."""
        self.create(session_id=session, rpc_id=rpc_id, created_ms=NowMilliseconds())

    def answer(self, session: int, rpc_id: str, answer: str, *, tell: bool) -> bool:
        """Store the first answer, and `tell`; return whether it was ever asked."""
        questions = self.filter(session_id=session, rpc_id=rpc_id)
        if not questions.filter(answer="").update(answer=answer):
            return questions.exists()
        if tell:
            Change.objects.using(questions.db).record(QUESTION, rpc_id)
        return True

    def erase(self, session: int, rpc_id: str) -> None:
        """Forget the answer, also one that comes from now on."""
        self.filter(session_id=session, rpc_id=rpc_id).update(answer=FORGOTTEN)

    def over(self, created_ms: int | CombinedExpression) -> QuestionQuerySet:
        """Return those that were asked before then, and of which none waits.

        Another process may let its questions wait for longer than this one would.
        """
        return self.filter(~_waits(), created_ms__lt=created_ms)

    def waiting(self) -> QuestionQuerySet:
        return self.filter(_waits())


def _waits() -> Combinable:
    calls = Stream.objects.filter(session=models.OuterRef("session"))
    running = calls.filter(ended_ms=None, state=OPEN)
    return models.Q(answer="") & models.Exists(running)


class Question(models.Model):
    """`rpc_id` is the id of the request to the client, `answer` its whole reply."""

    session = models.ForeignKey(
        "mcp_app.Session", on_delete=models.CASCADE, db_index=False
    )
    rpc_id = ExactCharField(max_length=64)
    answer = models.TextField(blank=True)
    created_ms = models.BigIntegerField(db_index=True)

    objects = QuestionQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["session", "rpc_id"], name="mcp_question"),
        ]
        indexes = [models.Index(fields=["rpc_id"], name="mcp_question_id")]

    def __str__(self) -> str:
        return self.rpc_id


# -- once ------------------------------------------------------------------------------
# What `ctx.once` did, written in the transaction of the step itself.


class OnceQuerySet(models.QuerySet["Once"]):
    def older_than(self, created_ms: int | CombinedExpression) -> OnceQuerySet:
        return self.filter(created_ms__lt=created_ms)


class Once(models.Model):
    """`result` is any JSON; the digests are of the round trip's id and of the key."""

    round_trip = DigestField()
    key = DigestField()
    result = JSONTextField(shape="any")
    created_ms = models.BigIntegerField(db_index=True)

    objects = OnceQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["round_trip", "key"], name="mcp_once"),
        ]

    def __str__(self) -> str:
        return f"{self.round_trip[:12]} {self.key[:12]}"


# -- topics ----------------------------------------------------------------------------
# What changed, and at which number: change rows, folded.
#
# A number is drawn from one counter row, which is locked until its commit: the order of
# numbers is the order of commits, and no number is used twice.

COUNTER = "changes"


class CounterQuerySet(models.QuerySet["Counter"]):
    def draw(self) -> int:
        if not self._increment_counter():
            # Somebody has emptied the table.
            self.get_or_create(name=COUNTER)
            self._increment_counter()
        return self.get(name=COUNTER).value

    def _increment_counter(self) -> int:
        return self.filter(name=COUNTER).update(value=models.F("value") + 1)


class Counter(models.Model):
    """`value` is the number drawn last; up to `floor`, topics may be forgotten."""

    name = models.CharField(max_length=16, primary_key=True)
    value = models.BigIntegerField(default=0)
    floor = models.BigIntegerField(default=0)

    objects = CounterQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} {self.value}"


class Topic(models.Model):
    """`kind` and `ref` as in `Change`, and the number at which they changed last.

    `previous` is the number before that one.  `folded` holds the ids of the change
    rows that became this number: whoever has seen them all has nothing new to see.
    """

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(max_length=32)
    ref = ExactCharField(max_length=255)
    version = models.BigIntegerField(db_index=True)
    previous = models.BigIntegerField(default=0)
    folded = models.TextField(blank=True)
    changed_ms = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["kind", "ref"], name="mcp_topic")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref} {self.version}"


def ids_from_text(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split()))


def ids_to_text(ids: Iterable[int]) -> str:
    return " ".join(map(str, ids))
