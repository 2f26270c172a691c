"""Statements that append to the replay log: in one transaction, for many streams.

PostgreSQL does it with one statement, which is a transaction by itself: meanwhile no
other work of this process need wait.  Other databases need five statements at most,
however many streams there are.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_app.models.transactions import now_sql
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

OPEN: Final = "open"
"""The state of a stream that still takes messages."""

Columns: TypeAlias = dict[str, str | int | None]
Payload: TypeAlias = tuple[int, str, int]
"""Number, text, and size in bytes of a message."""


@dataclass(frozen=True, slots=True)
class NewStream:
    """The row of a request that is still to be inserted.

    `request_key` is the digest of the JSON-RPC id if the request must run at most once,
    else None; `request_digest` tells whether a request with the same id is the same.
    `requests` is the JSON-RPC id that is answered, as JSON; of a batch an array.
    """

    public_id: str
    session_id: int
    requests: str
    tool: str = ""
    request_key: str | None = None
    request_digest: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a stream: `new` is its row if that is still to be inserted.

    `key` is the key of an existing row; `seq`, `size` and `state` are the row's values
    afterwards.
    """

    new: NewStream | None
    key: int | None
    seq: int
    size: int
    state: str
    payloads: Sequence[Payload]


@dataclass(frozen=True, slots=True)
class Tables:
    """The quoted names of our tables; the owner and the batch that write into them."""

    streams: str
    events: str
    owner: str
    batch: str


def append_to_streams(
    connection: BaseDatabaseWrapper, tables: Tables, additions: Sequence[Addition]
) -> list[int | None]:
    """Add to open streams of the owner; return their keys, None for all others."""
    if is_one_statement(connection):
        return _append_together(connection, tables, additions)
    return _one_after_another(connection, tables, additions)


def is_one_statement(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "postgresql"


def _column_values(tables: Tables, addition: Addition) -> Columns:
    stream = addition.new
    if stream is None:
        raise ValueError("This stream has a row.")
    return {
        "public_id": stream.public_id,
        "session_id": stream.session_id,
        "owner": tables.owner,
        "requests": stream.requests,
        "tool": stream.tool,
        "request_key": stream.request_key,
        "request_digest": stream.request_digest,
        "head_seq": addition.seq,
        "floor_seq": 0,
        "size": addition.size,
        "state": addition.state,
        "last_batch": tables.batch,
    }


def _stream_keys(
    additions: Sequence[Addition], created: Mapping[str, int], raised: Container[int]
) -> list[int | None]:
    """Return the key of each stream; None if it was neither inserted nor updated."""
    return [
        created[addition.new.public_id]
        if addition.new is not None
        else (addition.key if addition.key in raised else None)
        for addition in additions
    ]


# -- one statement ------------------------------------------------------------------

_NEW: Final = (
    "public_id text, session_id bigint, owner text, requests text, tool text,"
    " request_key text, request_digest text, head_seq bigint, floor_seq bigint,"
    " size bigint, state text, last_batch text"
)
_NEW_NAMES: Final = ", ".join(each.split()[0] for each in _NEW.split(", "))

_TOGETHER: Final = """
WITH given AS (
    SELECT * FROM json_to_recordset(%(new)s) AS given ({new})
), made AS (
    INSERT INTO {streams} ({names}, created_ms, ended_ms)
    SELECT {names}, {now}, CASE WHEN state <> 'open' THEN {now} END FROM given
    RETURNING id, public_id
), heads AS (
    SELECT * FROM json_to_recordset(%(heads)s)
        AS heads (id bigint, seq bigint, size bigint, state text)
), held AS (
    SELECT id FROM {streams} WHERE id IN (SELECT id FROM heads)
    AND owner = %(owner)s AND state = 'open' ORDER BY id FOR UPDATE
), raised AS (
    UPDATE {streams} SET head_seq = heads.seq, size = heads.size, state = heads.state,
        last_batch = %(batch)s,
        ended_ms = CASE WHEN heads.state <> 'open' THEN {now} END
    FROM held, heads WHERE {streams}.id = held.id AND heads.id = held.id
    RETURNING {streams}.id
), said AS (
    SELECT * FROM json_to_recordset(%(events)s) AS said
        (public_id text, id bigint, seq bigint, payload text, size bigint)
), added AS (
    INSERT INTO {events} (stream_id, seq, payload, size)
    SELECT COALESCE(made.id, raised.id), seq, payload, size FROM said
    LEFT JOIN made ON made.public_id = said.public_id
    LEFT JOIN raised ON raised.id = said.id
    WHERE made.id IS NOT NULL OR raised.id IS NOT NULL
)
SELECT id, public_id FROM made UNION ALL SELECT id, NULL FROM raised
"""


def _append_together(
    connection: BaseDatabaseWrapper, tables: Tables, additions: Sequence[Addition]
) -> list[int | None]:
    statement = _TOGETHER.format(
        streams=tables.streams,
        events=tables.events,
        new=_NEW,
        names=_NEW_NAMES,
        now=now_sql(connection),
    )
    new = [_column_values(tables, each) for each in additions if each.new is not None]
    heads = [
        {"id": each.key, "seq": each.seq, "size": each.size, "state": each.state}
        for each in additions
        if each.new is None
    ]
    events = [event for addition in additions for event in _event_values(addition)]
    # As JSON each is one parameter: arrays would cost the client many times more.
    parameters = {
        "new": jsonrpc.write(new).decode(),
        "heads": jsonrpc.write(heads).decode(),
        "events": jsonrpc.write(events).decode(),
        "owner": tables.owner,
        "batch": tables.batch,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    created = {name: int(key) for key, name in rows if name is not None}
    raised = {int(key) for key, name in rows if name is None}
    return _stream_keys(additions, created, raised)


def _event_values(addition: Addition) -> Iterator[Mapping[str, object]]:
    stream = (
        {"id": addition.key}
        if addition.new is None
        else {"public_id": addition.new.public_id}
    )
    for seq, payload, size in addition.payloads:
        yield {**stream, "seq": seq, "payload": payload, "size": size}


# -- several statements -------------------------------------------------------------


def _one_after_another(
    connection: BaseDatabaseWrapper, tables: Tables, additions: Sequence[Addition]
) -> list[int | None]:
    new = [addition for addition in additions if addition.new]
    created = _insert_streams(connection, tables, new)
    by_key = {each.key: each for each in additions if each.key is not None}
    raised = _update_streams(connection, tables, by_key)
    keys = _stream_keys(additions, created, raised)
    events = [
        (key, *payload)
        for key, each in zip(keys, additions, strict=True)
        if key is not None
        for payload in each.payloads
    ]
    if events:
        statement = (
            f"INSERT INTO {tables.events} (stream_id, seq, payload, size)"  # noqa: S608 - our own names
            " VALUES (%s, %s, %s, %s)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(statement, events)
    return keys


def _insert_streams(
    connection: BaseDatabaseWrapper, tables: Tables, additions: Sequence[Addition]
) -> dict[str, int]:
    if not additions:
        return {}
    now = now_sql(connection)
    rows = [_column_values(tables, addition) for addition in additions]
    marks = ", ".join(["%s"] * len(rows[0]))
    values = ", ".join(
        f"({marks}, {now}, {'NULL' if each.state == OPEN else now})"
        for each in additions
    )
    names = [str(row["public_id"]) for row in rows]
    insert = (
        f"INSERT INTO {tables.streams} ({', '.join(rows[0])}, created_ms, ended_ms)"  # noqa: S608 - our own names
        f" VALUES {values}"
    )
    select = (
        f"SELECT public_id, id FROM {tables.streams}"  # noqa: S608 - our own names
        f" WHERE public_id IN ({', '.join(['%s'] * len(names))})"
    )
    with connection.cursor() as cursor:
        cursor.execute(insert, [part for row in rows for part in row.values()])
        # Not every database returns the keys of inserted rows.
        cursor.execute(select, names)
        return {name: int(key) for name, key in cursor.fetchall()}


def _update_streams(
    connection: BaseDatabaseWrapper, tables: Tables, additions: Mapping[int, Addition]
) -> set[int]:
    """Update open streams of the owner; return the keys of the updated ones."""
    if not additions:
        return set()
    keys = sorted(additions)
    case = f"CASE id {'WHEN %s THEN %s ' * len(keys)}END"
    marks = ", ".join(["%s"] * len(keys))
    # InnoDB locks rows in the order in which it finds them.
    order = " ORDER BY id" if connection.vendor == "mysql" else ""
    ended = [str(int(key)) for key, each in additions.items() if each.state != OPEN]
    end = f"CASE WHEN id IN ({', '.join(ended)}) THEN {now_sql(connection)} END"
    update = (
        f"UPDATE {tables.streams} SET head_seq = {case}, size = {case},"  # noqa: S608 - our own names
        f" state = {case}, last_batch = %s, ended_ms = {end if ended else 'NULL'}"
        f" WHERE id IN ({marks}) AND owner = %s AND state = %s{order}"
    )
    case_values = [
        part
        for name in ("seq", "size", "state")
        for key in keys
        for part in (key, getattr(additions[key], name))
    ]
    select = (
        f"SELECT id FROM {tables.streams} WHERE id IN ({marks}) AND last_batch = %s"  # noqa: S608 - our own names
    )
    with connection.cursor() as cursor:
        cursor.execute(update, [*case_values, tables.batch, *keys, tables.owner, OPEN])
        if cursor.rowcount == len(keys):
            return set(keys)
        cursor.execute(select, [*keys, tables.batch])
        return {int(key) for (key,) in cursor.fetchall()}
