"""Log messages to clients from outside of their calls: rows, so that none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from django.apps import apps
from django.db import models

from mcp_app.models.changes import ANY, Change
from mcp_app.models.clock import NowMilliseconds
from mcp_app.models.transactions import own_transaction

LOGGED: Final = "logged"
"""The kind of a change that says that there are messages for a session, the ref."""
MOST_TOLD: Final = 1_000
"""Where more sessions are told, one change stands for all."""
AT_ONCE: Final = 100
ROWS: Final = 500
BYTES: Final = 512 * 1024
"""So much one statement inserts; a database may refuse more, and break the site's
transaction with it."""

NumberedText: TypeAlias = tuple[int, str]
"""A message with its number in the session."""


class LoggedMessageQuerySet(models.QuerySet["LoggedMessage"]):
    def log(self, sessions: Sequence[int], payload: str) -> None:
        """Add a message to each of these sessions, in the caller's transaction."""
        rows = [
            LoggedMessage(session_id=pk, payload=payload, created_ms=NowMilliseconds())
            for pk in sessions
        ]
        size = max(1, len(payload.encode()))
        self.bulk_create(rows, batch_size=min(ROWS, max(1, BYTES // size)))
        refs = [str(pk) for pk in sessions] if len(sessions) <= MOST_TOLD else [ANY]
        Change.objects.using(self.db).record_all(LOGGED, refs)

    def numbered(self, session: int, after: int) -> list[NumberedText]:
        """Return what follows a number, `AT_ONCE` at most, in a transaction of its own.

        Messages that were never sent get their numbers now: whoever logs them waits
        for nobody.
        """
        own = self.filter(session_id=session)
        with own_transaction(self.db):
            # By its name, as the key below: what deletes sessions knows this module.
            sessions = apps.get_model("mcp_app", "Session")._default_manager
            row = sessions.using(self.db).filter(pk=session)
            logged = row.select_for_update().values_list("logged", flat=True).first()
            if logged is None:
                return []
            new = list(own.filter(seq=None).order_by("pk")[:AT_ONCE])
            for each in new:
                logged += 1
                own.filter(pk=each.pk).update(seq=logged)
            if new:
                row.update(logged=logged)
            found = own.filter(seq__gt=after).order_by("seq")
            return [(each.seq or 0, each.payload) for each in found[:AT_ONCE]]


class LoggedMessage(models.Model):
    """`payload` is the notification as JSON; `seq` its number, once it was sent.

    Who logs must not wait for who serves the session: the database checks no key.
    """

    session = models.ForeignKey(
        "mcp_app.Session", on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField(null=True)
    payload = models.TextField()
    created_ms = models.BigIntegerField(db_index=True)

    objects = LoggedMessageQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"
        # No page: nobody needs a right.
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="mcp_logged"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id}.{self.seq}"
