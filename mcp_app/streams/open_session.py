"""A session as one process knows it; its id is a secret, stored as a digest."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any, Self

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models.fields import digest as digest_of
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import Revision


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
    seen: float = 0.0
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
    def begun(cls, opening: Opening, session_id: str) -> Self:
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


def not_found() -> SessionNotFound:
    """Return the error for a session that is closed, unknown or somebody else's."""
    return SessionNotFound()


def agree(session: OpenSession, row: OpenSession) -> None:
    """Copy what `initialize` has agreed on, which happens once."""
    if row.negotiated and not session.negotiated:
        session.revision, session.client = row.revision, row.client
        session.negotiated = True
