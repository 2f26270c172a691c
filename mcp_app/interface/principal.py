"""Who is asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from mcp_app.protocol.headers import Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The user and the client behind a request, or nobody.

    `user_id` is the primary key of the Django user as text, "" for none; `client`
    is the token's family, "session", "stdio", or what a site's callable says.
    `permissions` of None asks Django for the user's; a set stands for itself.
    """

    ANONYMOUS: ClassVar[Principal]

    kind: str
    user_id: str = ""
    user_name: str = ""
    client: str = ""
    scopes: frozenset[str] = frozenset()
    permissions: frozenset[str] | None = None
    key: str = field(init=False, repr=False)
    """What binds sessions, streams, request state and cursors to their owner."""
    anonymous: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = "\x1f".join((self.kind, self.user_id, self.client))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "anonymous", self.kind == "anonymous")


Principal.ANONYMOUS = Principal(kind="anonymous", permissions=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRequest:
    """What an authentication callable of `MCP["AUTHENTICATION"]` gets to see.

    The callable returns a `Principal`, None for "not mine", or raises
    `AuthenticationFailed`.
    """

    headers: Headers
    host: str
    path: str
    server: str
    method: str = "POST"
    extra: Mapping[str, object] = field(default_factory=dict)


class AuthenticationFailed(Exception):
    """The credentials are there and wrong: the request ends with 401."""
