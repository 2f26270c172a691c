"""A session as one process knows it; its id is a secret, stored as a digest."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self, TypeAlias

from django.db import IntegrityError, connections, transaction
from django.db.models import F, Prefetch, Q, QuerySet
from django.db.models.functions import Greatest

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models import Session
from mcp_app.models.fields import digest as digest_of
from mcp_app.models.sessions import SessionQuerySet, Subscription
from mcp_app.models.transactions import NowMilliseconds, StatementMilliseconds
from mcp_app.pools.batching import Batches
from mcp_app.pools.database import writer
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import REVISIONS, Revision
from mcp_app.streams.event_ids import SeenEvents


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session starts with: its principal, its server, and what was agreed on.

    `streams` is False if none can be kept open (WSGI).
    """

    principal: Principal
    server: str
    revision: Revision
    client: Client
    streams: bool = True


@dataclass(slots=True, eq=False, kw_only=True)
class OpenSession:
    """A session as this process knows it.

    Times are seconds of this process's monotonic clock, which does not jump; ages come
    from the row, whose times are the database's.
    """

    pk: int
    digest: str
    principal_key: str
    server: str
    revision: Revision
    client: Client
    level: int | None = None
    initialized: bool = False
    created: float = 0.0
    last_used: float = 0.0
    """When the row was last updated because of use, by this process or another."""
    fresh: float = 0.0
    """Until when its row need not be read."""
    session_id: str = ""
    """The id that its client sends; kept in memory only."""
    uris: dict[str, str] = field(default_factory=dict)
    """Resources that the session watches, by their digests."""
    running: dict[str | int, Any] = field(default_factory=dict)
    streams: list[Any] = field(default_factory=list)
    """Its open GET streams in this process."""
    newest: int = 0
    """The number of its newest GET stream: how many were opened, in any process."""
    holder: str = ""
    """The process that has its stream, if it is a session of HTTP+SSE."""
    whole: bool = False
    """Whether it was opened where no stream can be kept open (WSGI)."""
    negotiated: bool = True
    """Whether revision and client are those of `initialize`."""
    closed: bool = False
    """Whether it has ended: its calls were cancelled, and nothing may start."""

    @classmethod
    def from_opening(cls, opening: Opening, session_id: str) -> Self:
        """Return a session that has no row yet."""
        return cls(
            pk=0,
            digest=digest_of(session_id),
            principal_key=opening.principal.key,
            server=opening.server,
            revision=opening.revision,
            client=opening.client,
            whole=not opening.streams,
        )

    @property
    def has_row(self) -> bool:
        """Whether the session is stored, so that other processes know it."""
        return self.pk != 0

    def next_question_id(self) -> str:
        return f"question-{secrets.token_hex(8)}"


def new_session_id() -> str:
    """Return the id of a new session: a secret of 256 bits."""
    return secrets.token_urlsafe(32)


class SessionNotFound(RequestRefused):
    """The session is closed, unknown or somebody else's."""

    def __init__(self) -> None:
        super().__init__(404, "Session not found. Initialize a new one.")


def adopt_agreement(session: OpenSession, row: OpenSession) -> None:
    """Copy what `initialize` has agreed on, which happens once."""
    if row.negotiated and not session.negotiated:
        session.revision, session.client = row.revision, row.client
        session.negotiated = True


# -- session queries -------------------------------------------------------------------
# The database statements of sessions; the functions block, unless they are async.

USED_NOW: Final = Greatest(NowMilliseconds(), F("created_ms") + 1)
"""`seen_ms` of a session in use: later than its beginning, even if that is now."""
UNUSED: Final = Q(initialized=False, seen_ms__lte=F("created_ms"))
"""Nothing came after `initialize`."""
SLACK: Final = 50
"""If there are too many sessions, a fiftieth more is deleted, so this is rare."""


async def delete_sessions(rows: SessionQuerySet) -> None:
    """Delete sessions with everything that belongs to them, which may be a lot."""
    # In portions: the writer has other work, too.
    while await writer.run(rows.empty_some):
        continue
    await writer.run(rows.delete)


async def delete_session(pk: int) -> None:
    """Delete a session together with others that end now.

    For sessions whose clients are gone: one with many messages delays the others.
    """
    while not await _deletions.load_value(pk):
        continue


def _delete_portion(keys: list[int]) -> dict[int, bool]:
    """Delete sessions, or a portion of their messages; return whether it was all."""
    rows = Session.objects.filter(pk__in=keys)
    is_empty = not rows.empty_some()
    if is_empty:
        rows.delete()
    return dict.fromkeys(keys, is_empty)


_deletions = Batches(writer, _delete_portion)


@dataclass(frozen=True, slots=True, eq=False)
class NewSession:
    """A session that has no row yet; `change_number` is that of the last change."""

    session: OpenSession
    change_number: int
    max_sessions: int
    """The number of sessions that its principal may have; 0 for any."""
    anonymous: bool


Rows: TypeAlias = dict[int, str]
"""The digests of sessions, by the primary keys of their rows."""


def insert(new: list[NewSession]) -> dict[NewSession, Rows]:
    """Insert the rows of sessions; return for each the surplus of its principal.

    The surplus of one principal is returned once.
    """
    rows = [_session_row(each) for each in new]
    Session.objects.add(rows)
    for each, row in zip(new, rows, strict=True):
        each.session.pk = row.pk
        each.session.created = each.session.last_used = time.monotonic()
    # One session of each principal, so that its surplus is looked up once.
    one_each = {each.session.principal_key: each for each in reversed(new)}
    surplus = {each: _surplus_sessions(each) for each in one_each.values()}
    digests = {digest for rows in surplus.values() for digest in rows.values()}
    for each in new:
        each.session.closed = each.session.digest in digests
    return {each: surplus.get(each, {}) for each in new}


def _session_row(new: NewSession) -> Session:
    session = new.session
    client = session.client if session.negotiated else None
    return Session(
        digest=session.digest,
        principal_key=session.principal_key,
        server=session.server,
        holder=session.holder,
        whole=session.whole,
        # Both have the same time: a session that is seen later is in use.
        created_ms=StatementMilliseconds(),
        seen_ms=StatementMilliseconds(),
        seen=new.change_number,
        **agreed_values(session.revision, client),
    )


def _surplus_sessions(new: NewSession) -> Rows:
    if not new.max_sessions:
        return {}
    rows = Session.objects.current()
    if new.anonymous:
        # The new session, which is excluded, needs one of the places.
        strangers = rows.anonymous().filter(holder="").exclude(pk=new.session.pk)
        return _surplus_of_strangers(strangers, max(1, new.max_sessions - 1))
    of_principal = rows.filter(principal_key=new.session.principal_key)
    least_recent = of_principal.order_by("-seen_ms", "-pk")[new.max_sessions :]
    return dict(least_recent.values_list("pk", "digest"))


def _surplus_of_strangers(sessions: SessionQuerySet, limit: int) -> Rows:
    surplus = sessions.count() - limit
    if surplus <= 0:
        return {}
    surplus += limit // SLACK
    # Unused sessions are deleted first, unless they are fewer than half.  So a flood of
    # them closes no session in use, and a new session has time to begin.
    unused = sessions.filter(UNUSED).order_by("seen_ms", "pk")
    rows = unused[: min(surplus, max(0, unused.count() - limit // 2))]
    digests = dict(rows.values_list("pk", "digest"))
    if len(digests) < surplus:
        used = sessions.exclude(UNUSED).order_by("seen_ms", "pk")
        surplus_used = used[: surplus - len(digests)]
        digests |= dict(surplus_used.values_list("pk", "digest"))
    return digests


def agreed_values(revision: Revision, client: Client | None) -> dict[str, str]:
    """Return the columns that `initialize` sets; before that, no client is known."""
    columns = {"revision": revision.version, "client_info": "", "capabilities": ""}
    if client is None:
        return columns
    info = {"name": client.name, "version": client.version, "title": client.title}
    columns["client_info"] = jsonrpc.write(info).decode()
    columns["capabilities"] = jsonrpc.write(client.capabilities).decode()
    return columns


class Use(NamedTuple):
    """A session that is in use, and the idle milliseconds after which it ends."""

    pk: int
    idle_ms: int


def note_uses(uses: list[Use]) -> dict[Use, bool]:
    """Note that sessions are in use now; return those that have not ended."""
    current: dict[Use, bool] = {}
    for idle_ms in {use.idle_ms for use in uses}:
        uses_by_pk = {use.pk: use for use in uses if use.idle_ms == idle_ms}
        oldest = NowMilliseconds() - idle_ms
        rows = Session.objects.filter(pk__in=[*uses_by_pk], seen_ms__gte=oldest)
        keys = rows.update_together(seen_ms=USED_NOW)
        current |= {uses_by_pk[pk]: True for pk in keys}
    return current


def note_handshakes(pks: list[int]) -> dict[int, bool]:
    rows = Session.objects.filter(pk__in=pks)
    return dict.fromkeys(rows.update_together(initialized=True), True)


def subscribe(pk: int, uri: str, limit: int) -> bool:
    watched = Subscription.objects.filter(session_id=pk)
    if watched.filter(uri_digest=digest_of(uri)).exists():
        return True
    if watched.count() >= limit:
        return False
    try:
        with transaction.atomic():
            watched.create(session_id=pk, uri=uri)
    except IntegrityError as error:
        if watched.filter(uri_digest=digest_of(uri)).exists():
            # Another process was quicker.
            return True
        if Session.objects.filter(pk=pk).exists():
            raise
        raise SessionNotFound from error
    return True


def client_positions(keys: list[int]) -> dict[int, SeenEvents]:
    rows = Session.objects.current().filter(pk__in=keys)
    positions = rows.values_list("pk", "logged", "seen")
    return {pk: SeenEvents(logged, changes) for pk, logged, changes in positions}


def read(digests: list[str]) -> dict[str, OpenSession]:
    current = Session.objects.current()
    present = _existing_digests(current.db, digests)
    if not present:
        return {}
    rows = _with_ages(current.filter(digest__in=present))
    return {row.digest: _session_from_row(row) for row in rows}


def _existing_digests(using: str, digests: list[str]) -> list[str]:
    # Strangers can send many unknown digests.  Everybody else would wait while Django
    # builds such a statement, so this is plain SQL.
    connection = connections[using]
    table = connection.ops.quote_name(Session._meta.db_table)
    marks = ", ".join(["%s"] * len(digests))
    statement = f"SELECT digest FROM {table} WHERE digest IN ({marks})"  # noqa: S608 - our own names
    with connection.cursor() as cursor:
        cursor.execute(statement, digests)
        return [digest for (digest,) in cursor.fetchall()]


def read_some(pks: list[int]) -> Mapping[int, OpenSession]:
    rows = _with_ages(Session.objects.current().filter(pk__in=pks))
    return {row.pk: _session_from_row(row) for row in rows}


def _with_ages(rows: SessionQuerySet) -> QuerySet[Any]:
    now = NowMilliseconds()
    watched = Subscription.objects.using(rows.db)
    rows = rows.prefetch_related(Prefetch("subscriptions", watched))
    return rows.annotate(age_ms=now - F("created_ms"), idle_ms=now - F("seen_ms"))


def _session_from_row(row: Any) -> OpenSession:
    now, info = time.monotonic(), row.client
    capabilities: Any = jsonrpc.read(row.capabilities.encode() or b"{}")
    return OpenSession(
        pk=row.pk,
        digest=row.digest,
        principal_key=row.principal_key,
        server=row.server,
        revision=REVISIONS[row.revision],
        client=Client(
            name=str(info.get("name", "")),
            version=str(info.get("version", "")),
            title=str(info.get("title", "")),
            capabilities=capabilities,
        ),
        level=row.log_level,
        initialized=row.initialized,
        # Times that lie in the future become now.
        created=now - max(0, row.age_ms) / 1000,
        last_used=now - max(0, row.idle_ms) / 1000,
        uris={each.uri_digest: each.uri for each in row.subscriptions.all()},
        newest=row.streams,
        holder=row.holder,
        whole=row.whole,
        negotiated=not row.holder or bool(row.client_info),
    )
