"""The replay log: what was answered to each request, message by message.

A row of `Event`, a message, never changes, with one exception: a private question is
replaced when its call is over.  The lock of the stream's row is held from numbering
until the commit.  So numbers have no gaps and commit in order: a reader that goes on
after the last number it has seen misses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Self, TypeAlias, TypeVar

from django.apps import apps
from django.db import connections, models, router

from mcp_app.models.appends import OPEN, Addition, Tables, append_to_streams
from mcp_app.models.changes import ANY, Change
from mcp_app.models.expiry import claim_rows, delete_rows
from mcp_app.models.fields import DigestField, ExactCharField
from mcp_app.models.transactions import NowMilliseconds, own_transaction

AT_ONCE = 500
"""Events that one statement reads; streams that one transaction removes."""
MAX_DELETED: Final = 2_000
MAX_DELETED_BYTES: Final = 4 * 1024 * 1024
"""The most messages, and the most bytes of messages, that one transaction deletes."""

Row = TypeVar("Row", bound=models.Model)


class CurrentRows(models.QuerySet[Row]):
    """Rows that are read where they are written: a replica may not have them yet."""

    def current(self) -> Self:
        return self.using(router.db_for_write(self.model))


class StreamQuerySet(CurrentRows["Stream"]):
    def append(
        self, additions: Sequence[Addition], owner: str, batch: str
    ) -> list[int | None]:
        """Add to the streams of an owner; `batch` names what is added together.

        Returns their keys; None stands for a stream that is closed or of another owner.
        Raises `IntegrityError` if a session is gone, or a request is there already.
        """
        self._for_write = True
        connection = connections[self.db]
        quoted = connection.ops.quote_name
        tables = Tables(
            quoted(Stream._meta.db_table), quoted(Event._meta.db_table), owner, batch
        )
        return append_to_streams(connection, tables, additions)

    def open(self) -> StreamQuerySet:
        return self.filter(ended_ms=None, state=OPEN)

    def unread(self) -> StreamQuerySet:
        """Return streams that may have messages; an index finds their states."""
        states = Stream.State
        return self.filter(state__in=[states.OPEN, states.COMPLETED, states.ABORTED])

    def sized(self) -> StreamQuerySet:
        """Load only the small columns: the JSON-RPC id of a request may be large."""
        return self.only("head_seq", "floor_seq", "size")

    def remove_some(self) -> int | None:
        """Delete some streams with their messages; None if there are none."""
        using = router.db_for_write(Stream)
        with own_transaction(using):
            batch = list(claim_rows(self.using(using).sized())[:AT_ONCE])
            emptied = delete_messages(using, batch)
            delete_rows(using, Stream, emptied)
        return len(emptied) if batch else None

    def delete_read(self, keys: Sequence[int]) -> set[int]:
        """Delete read messages of ended streams; return the keys that are finished."""
        using = router.db_for_write(Stream)
        with own_transaction(using):
            batch = self.using(using).filter(pk__in=keys[:AT_ONCE]).order_by("pk")
            locked = list(batch.select_for_update().sized())
            emptied = delete_messages(using, locked)
            # A row with a request key stays: a repeated request must find it.
            rows = self.using(using).filter(pk__in=emptied).exclude(request_key=None)
            retained = set(rows.values_list("pk", flat=True))
            delete_rows(using, Stream, [pk for pk in emptied if pk not in retained])
            self.using(using).filter(pk__in=retained).update(
                state=Stream.State.CLOSED, floor_seq=models.F("head_seq"), size=0
            )
        unfinished = {each.pk for each in locked} - set(emptied)
        # A row that is gone is finished, too.
        return set(keys[:AT_ONCE]) - unfinished


class Stream(models.Model):
    """A request whose messages are kept.

    On the wire its events are `<public_id>.<seq>`, from 1 to `head_seq`; those up to
    `floor_seq` are deleted, and `size` is the bytes of the others.
    `requests` is the JSON-RPC id that is answered, as JSON; of a batch it is an array.
    Only `owner`, the key of a worker, adds to an open stream; `last_batch` names what
    it committed last.  Times are milliseconds of the database's clock.
    """

    class State(models.TextChoices):
        OPEN = OPEN
        COMPLETED = "completed"
        ABORTED = "aborted"
        CLOSED = "closed"

    session = models.ForeignKey(
        "mcp_app.Session",
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
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["session", "request_key"], name="mcp_request"
            ),
            models.UniqueConstraint(fields=["public_id"], name="mcp_stream"),
        ]
        indexes = [
            # Only a stream's end changes an indexed column: other appends stay cheap.
            models.Index(fields=["ended_ms", "owner"], name="mcp_stream_end"),
            # An HTTP+SSE session may have many closed streams; a search skips them.
            models.Index(fields=["session", "state"], name="mcp_stream_state"),
        ]

    def __str__(self) -> str:
        return self.public_id


class EventQuerySet(CurrentRows["Event"]):
    def replace(self, stream: int, seq: int, payload: str) -> None:
        """Replace the text of a message; its `size` stays that of the first text."""
        self.filter(stream_id=stream, seq=seq).update(payload=payload)

    def after(self, stream: int, seq: int) -> Iterable[tuple[int, str]]:
        rows = self.filter(stream_id=stream, seq__gt=seq).order_by("seq")
        return rows.values_list("seq", "payload")[:AT_ONCE]


class Event(models.Model):
    """One message of a stream, as JSON text; `size` is in bytes."""

    pk = models.CompositePrimaryKey("stream_id", "seq")
    # Who inserts has locked the stream's row, so the database need not look for it.
    stream = models.ForeignKey(
        Stream, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField()
    payload = models.TextField()
    size = models.BigIntegerField()

    objects = EventQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.stream_id}.{self.seq}"


def delete_messages(using: str, streams: Sequence[Stream]) -> list[int]:
    """Delete the messages of the first streams, as many as one transaction may delete.

    The caller has locked their rows.  Returns the keys of the streams that are empty
    now.  If even the first stream is too large, only its oldest messages are deleted.
    """
    emptied: list[int] = []
    messages_left, size_left = MAX_DELETED, MAX_DELETED_BYTES
    for stream in streams:
        messages_left -= stream.head_seq - stream.floor_seq
        size_left -= stream.size
        if messages_left < 0 or size_left < 0:
            break
        emptied.append(stream.pk)
    if streams and not emptied:
        delete_first(using, streams[0], streams[0].head_seq)
    delete_rows(using, Event, emptied, "stream_id")
    return emptied


def delete_first(using: str, stream: Stream, last: int) -> int:
    """Delete a stream's first messages up to a number, as many as one transaction may.

    The caller has locked its row, which is updated here.  Returns by how much
    `floor_seq` grew.
    """
    events = Event.objects.using(using).filter(stream_id=stream.pk, seq__lte=last)
    sizes = list(events.order_by("seq").values_list("seq", "size")[:MAX_DELETED])
    # If nothing is stored up to `last`, the floor can rise to it at once.
    floor, size = (stream.floor_seq if sizes else last), 0
    for seq, event_size in sizes:
        if size and size + event_size > MAX_DELETED_BYTES:
            break
        floor, size = seq, size + event_size
    events.filter(seq__lte=floor)._raw_delete(using)
    row = Stream.objects.using(using).filter(pk=stream.pk)
    row.update(floor_seq=floor, size=models.F("size") - size)
    return floor - stream.floor_seq


# -- log messages ----------------------------------------------------------------------
# Log messages to clients from outside of their calls: rows, so that none is lost.

LOGGED: Final = "logged"
"""The kind of a change: there are log messages for the session that its ref names."""
MOST_TOLD: Final = 1_000
"""If more sessions are told, one change stands for all."""
LOG_BATCH_SIZE: Final = 100
MAX_INSERTED_ROWS: Final = 500
MAX_LOG_BATCH_BYTES: Final = 512 * 1024
"""How much one statement inserts.  If a database refused it, the site's transaction
would break."""

NumberedText: TypeAlias = tuple[int, str]


class LoggedMessageQuerySet(models.QuerySet["LoggedMessage"]):
    def log(self, sessions: Sequence[int], payload: str) -> None:
        rows = [
            LoggedMessage(session_id=pk, payload=payload, created_ms=NowMilliseconds())
            for pk in sessions
        ]
        size = max(1, len(payload.encode()))
        self.bulk_create(
            rows, batch_size=min(MAX_INSERTED_ROWS, max(1, MAX_LOG_BATCH_BYTES // size))
        )
        refs = [str(pk) for pk in sessions] if len(sessions) <= MOST_TOLD else [ANY]
        Change.objects.using(self.db).record_all(LOGGED, refs)

    def numbered(self, session: int, after: int) -> list[NumberedText]:
        """Number new messages; return at most `LOG_BATCH_SIZE` after a number."""
        rows = self.filter(session_id=session)
        with own_transaction(self.db):
            # By name: the module of sessions imports this one.
            sessions = apps.get_model("mcp_app", "Session")._default_manager
            row = sessions.using(self.db).filter(pk=session)
            logged = row.select_for_update().values_list("logged", flat=True).first()
            if logged is None:
                return []
            new = list(rows.filter(seq=None).order_by("pk")[:LOG_BATCH_SIZE])
            for each in new:
                logged += 1
                rows.filter(pk=each.pk).update(seq=logged)
            if new:
                row.update(logged=logged)
            messages = rows.filter(seq__gt=after).order_by("seq")
            return [(each.seq or 0, each.payload) for each in messages[:LOG_BATCH_SIZE]]


class LoggedMessage(models.Model):
    """`payload` is the notification as JSON; `seq` its number, once it was sent."""

    session = models.ForeignKey(
        "mcp_app.Session", on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField(null=True)
    payload = models.TextField()
    created_ms = models.BigIntegerField(db_index=True)

    objects = LoggedMessageQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="mcp_logged"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id}.{self.seq}"
