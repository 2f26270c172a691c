"""The log of requests: what was answered to each, message by message.

A row of `Event` is never changed.  Numbers are given out under the lock of the stream's
own row, which is held until the commit: their order is the order of commits, and there
are no gaps, so that who reads on after the last number that it has seen misses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import connections, models
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from mcp_app.models.clock import now_sql
from mcp_app.models.fields import DigestField, ExactCharField
from mcp_app.models.sessions import Session

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

OPEN = "open"
"""The state in which a stream may gain something."""
AT_ONCE = 500
"""Events that one statement reads."""


@dataclass(frozen=True, slots=True)
class NewStream:
    """The row of a request, before it is there.

    `request_key` is the digest of the JSON-RPC id where the request must run at most
    once, else None; `request_digest` tells whether a repeated id says the same.
    `requests` is the JSON array of the ids that are answered.
    """

    public_id: str
    session_id: int
    owner: str
    requests: str
    tool: str = ""
    request_key: str | None = None
    request_digest: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """What a stream's row says once more events are there."""

    seq: int
    size: int
    state: str


EventRow: TypeAlias = tuple[int, int, str, int]
"""Stream, number, payload, and the payload's size in bytes."""


class StreamQuerySet(models.QuerySet["Stream"]):
    def insert(
        self, new: Sequence[tuple[NewStream, Head]], batch: str
    ) -> dict[str, int]:
        """Insert rows with their heads; return the keys by public id.

        Raises `IntegrityError` where a session is gone, or a request is there already.
        """
        rows = [_values(stream, head, batch) for stream, head in new]
        connection = connections[self._alias()]
        now = now_sql(connection)
        ended = [now if head.state != OPEN else "NULL" for _, head in new]
        own = ", ".join(["%s"] * len(rows[0]))
        columns = (*rows[0], "created_ms", "ended_ms")
        values = ", ".join(f"({own}, {now}, {each})" for each in ended)
        statement = (
            f"INSERT INTO {_table(connection, self.model)} ({', '.join(columns)})"  # noqa: S608 - our own names
            f" VALUES {values}"
        )
        returns = connection.features.can_return_columns_from_insert
        if returns:
            statement += " RETURNING public_id, id"
        with connection.cursor() as cursor:
            cursor.execute(statement, [part for row in rows for part in row.values()])
            if returns:
                return {name: int(key) for name, key in cursor.fetchall()}
        names = [stream.public_id for stream, _ in new]
        found = self.filter(public_id__in=names).values_list("public_id", "pk")
        return dict(found)

    def raise_heads(
        self, heads: Mapping[int, Head], owner: str, batch: str
    ) -> set[int]:
        """Write what open streams of an owner have now; return those that are.

        One statement, which locks the rows in the order of their keys.  The others have
        been closed, or belong to somebody else.
        """
        connection = connections[self._alias()]
        if connection.vendor == "postgresql":
            return _raised_together(connection, heads, owner, batch)
        return self._raised_by_case(connection, heads, owner, batch)

    def _raised_by_case(
        self,
        connection: BaseDatabaseWrapper,
        heads: Mapping[int, Head],
        owner: str,
        batch: str,
    ) -> set[int]:
        keys = sorted(heads)
        case = f"CASE id {'WHEN %s THEN %s ' * len(keys)}END"
        # InnoDB locks rows in the order in which it finds them.
        order = " ORDER BY id" if connection.vendor == "mysql" else ""
        statement = (
            f"UPDATE {_table(connection, self.model)} SET head_seq = {case},"  # noqa: S608 - our own names
            f" size = {case}, state = {case}, last_batch = %s,"
            f" ended_ms = {_ended(connection, heads)}"
            f" WHERE id IN ({', '.join(['%s'] * len(keys))})"
            f" AND owner = %s AND state = %s{order}"
        )
        chosen = [
            *(part for key in keys for part in (key, heads[key].seq)),
            *(part for key in keys for part in (key, heads[key].size)),
            *(part for key in keys for part in (key, heads[key].state)),
        ]
        with connection.cursor() as cursor:
            cursor.execute(statement, [*chosen, batch, *keys, owner, OPEN])
            if cursor.rowcount == len(keys):
                return set(keys)
        return set(
            self.filter(pk__in=keys, last_batch=batch).values_list("pk", flat=True)
        )

    def _alias(self) -> str:
        self._for_write = True
        return self.db


def _ended(connection: BaseDatabaseWrapper, heads: Mapping[int, Head]) -> str:
    """Return what the end of each stream is set to; the keys are numbers of ours."""
    ended = [str(int(key)) for key, head in heads.items() if head.state != OPEN]
    if not ended:
        return "NULL"
    return f"CASE WHEN id IN ({', '.join(ended)}) THEN {now_sql(connection)} END"


def _values(stream: NewStream, head: Head, batch: str) -> dict[str, str | int | None]:
    return {
        "public_id": stream.public_id,
        "session_id": stream.session_id,
        "owner": stream.owner,
        "requests": stream.requests,
        "tool": stream.tool,
        "request_key": stream.request_key,
        "request_digest": stream.request_digest,
        "head_seq": head.seq,
        "floor_seq": 0,
        "size": head.size,
        "state": head.state,
        "last_batch": batch,
    }


def _raised_together(
    connection: BaseDatabaseWrapper, heads: Mapping[int, Head], owner: str, batch: str
) -> set[int]:
    table = _table(connection, Stream)
    statement = f"""
        WITH mine AS (
            SELECT id FROM {table} WHERE id = ANY(%s) AND owner = %s AND state = %s
            ORDER BY id FOR UPDATE
        )
        UPDATE {table} SET head_seq = new.seq, size = new.size, state = new.state,
            last_batch = %s,
            ended_ms = CASE WHEN new.state <> %s THEN {now_sql(connection)} END
        FROM mine, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[])
            AS new (id, seq, size, state)
        WHERE {table}.id = mine.id AND new.id = mine.id
        RETURNING {table}.id
    """  # noqa: S608 - our own names
    keys = list(heads)
    with connection.cursor() as cursor:
        cursor.execute(
            statement,
            [
                *(keys, owner, OPEN, batch, OPEN, keys),
                [heads[key].seq for key in keys],
                [heads[key].size for key in keys],
                [heads[key].state for key in keys],
            ],
        )
        return {int(key) for (key,) in cursor.fetchall()}


class Stream(models.Model):
    """A request whose messages are kept.

    On the wire its events are `<public_id>.<seq>`, from 1 to `head_seq`; those up to
    `floor_seq` have been thrown away.  Only `owner`, the key of a worker, adds to an
    open stream; `last_batch` names what it committed last.  Times are milliseconds of
    the database's clock.
    """

    class State(models.TextChoices):
        OPEN = OPEN
        COMPLETED = "completed"
        ABORTED = "aborted"
        CLOSED = "closed"

    session = models.ForeignKey(
        Session,
        on_delete=models.CASCADE,
        related_name="request_streams",
        db_index=False,
    )
    public_id = ExactCharField(max_length=32)
    requests = models.TextField()
    request_key = models.CharField(max_length=64, null=True)  # noqa: DJ001 - NULL is not unique
    request_digest = DigestField(blank=True)
    tool = ExactCharField(max_length=128, blank=True)
    head_seq = models.BigIntegerField(default=0)
    floor_seq = models.BigIntegerField(default=0)
    state = models.CharField(max_length=9, choices=State)
    owner = models.CharField(max_length=32)
    last_batch = models.CharField(max_length=32)
    size = models.BigIntegerField(default=0)
    created_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)

    objects = StreamQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"
        constraints = [
            models.UniqueConstraint(
                fields=["session", "request_key"], name="mcp_request"
            ),
            models.UniqueConstraint(fields=["public_id"], name="mcp_stream"),
        ]
        indexes = [
            # What an append changes is in no index.
            models.Index(fields=["ended_ms", "owner"], name="mcp_stream_end"),
        ]

    def __str__(self) -> str:
        return self.public_id


@receiver(pre_delete, sender=Session, dispatch_uid="mcp_app streams")
def _close(instance: Session, using: str, **_: object) -> None:
    """Let nothing be appended to the streams of a session that is being deleted."""
    own = Stream.objects.using(using).filter(session_id=instance.pk, state=OPEN)
    own.update(state=Stream.State.CLOSED)


class EventQuerySet(models.QuerySet["Event"]):
    def insert(self, events: Sequence[EventRow]) -> None:
        """Insert events; `bulk_create` takes many times as long."""
        self._for_write = True
        connection: Any = connections[self.db]
        statement = (
            f"INSERT INTO {_table(connection, self.model)}"
            " (stream_id, seq, payload, size)"
        )
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                columns = [list(column) for column in zip(*events, strict=True)]
                arrays = "%s::bigint[], %s::bigint[], %s::text[], %s::bigint[]"
                together = f"{statement} SELECT * FROM unnest({arrays})"  # noqa: S608 - the same
                cursor.execute(together, columns)
            else:
                cursor.executemany(f"{statement} VALUES (%s, %s, %s, %s)", events)

    def after(self, stream: int, seq: int) -> Iterable[tuple[int, str]]:
        """Return the next events of a stream, `AT_ONCE` at most: number and payload."""
        rows = self.filter(stream_id=stream, seq__gt=seq).order_by("seq")
        return rows.values_list("seq", "payload")[:AT_ONCE]


class Event(models.Model):
    """One message of a stream, as JSON text; `size` is in bytes."""

    pk = models.CompositePrimaryKey("stream_id", "seq")
    # The lock of the stream's row says that it is there: the database need not look.
    stream = models.ForeignKey(
        Stream, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField()
    payload = models.TextField()
    size = models.BigIntegerField()

    objects = EventQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"

    def __str__(self) -> str:
        return f"{self.stream_id}.{self.seq}"


def _table(connection: BaseDatabaseWrapper, model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
