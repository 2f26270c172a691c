"""One session as a process knows it: its id is a secret, whose digest is stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any, Self

from mcp_app.interface.context import Client
from mcp_app.interface.principal import Principal
from mcp_app.models.fields import digest as digest_of
from mcp_app.protocol.errors import Refused
from mcp_app.protocol.revisions import Revision


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session begins with: who opens it, at which server, and what was agreed.

    Without `streams` it begins where none can be kept open (WSGI).
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
    """When the row was told last that it is used, by this process or another."""
    fresh: float = 0.0
    """Until when nothing need be asked of its row."""
    session_id: str = ""
    """What its client calls it; kept in memory alone."""
    uris: dict[str, str] = field(default_factory=dict)
    """Resources that the session watches, by their digests."""
    running: dict[str | int, Any] = field(default_factory=dict)
    streams: list[Any] = field(default_factory=list)
    """Its open GET streams in this process."""
    newest: int = 0
    """Which of its GET streams is the newest: so many were opened, anywhere."""
    holder: str = ""
    """The process that has its stream, where it is one of HTTP+SSE."""
    whole: bool = False
    """Whether it began where no stream can be kept open (WSGI)."""
    negotiated: bool = True
    """Whether revision and client are those of `initialize`."""
    closed: bool = False
    """Whether it has ended: what runs was cancelled, and nothing may begin."""

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


def not_found() -> Refused:
    """Return the answer to a session that is closed, unknown or somebody else's."""
    return Refused(404, "Session not found: initialize a new one.")


def agree(session: OpenSession, row: OpenSession) -> None:
    """Note what `initialize` has settled; it does so once."""
    if row.negotiated and not session.negotiated:
        session.revision, session.client = row.revision, row.client
        session.negotiated = True
