"""Questions to clients of sessions: rows, so that any process takes the answer."""

from __future__ import annotations

from django.db import models
from django.db.models.expressions import Combinable, CombinedExpression

from mcp_app.models.appends import OPEN
from mcp_app.models.changes import Change
from mcp_app.models.fields import ExactCharField
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
        """Store the first answer, and `tell` of it; return whether anybody asked."""
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
        """Return questions that were asked before a time, and for which no call waits.

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
