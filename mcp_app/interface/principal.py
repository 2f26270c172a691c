"""Who is asking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from mcp_app.interface.definitions import Definition
from mcp_app.protocol.headers import Headers

_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a credential reaches, of all that its bearer's rights allow.

    With `tags` that is what has one of them, without any everything.
    """

    read_only: bool = False
    tags: frozenset[str] = frozenset()

    def includes(self, definition: Definition) -> bool:
        """Whether a definition is there for whoever shows the credential."""
        if self.read_only and not definition.only_reads:
            return False
        return not self.tags or bool(self.tags & definition.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The user and the client behind a request, or nobody.

    `user_id` is the primary key of the Django user as text, "" for none; `client`
    is the token's family, "session", "stdio", or what a site's callable says.
    `permissions` of None asks Django for the user's; a set stands for itself.
    `scope` of None lets them all be used.
    """

    ANONYMOUS: ClassVar[Principal]

    kind: str
    user_id: str = ""
    user_name: str = ""
    client: str = ""
    scopes: frozenset[str] = frozenset()
    permissions: frozenset[str] | None = None
    scope: Scope | None = None
    key: str = field(init=False, repr=False)
    """What binds sessions, streams, request state and cursors to their owner."""
    anonymous: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = _SEPARATOR.join((self.kind, self.user_id, self.client))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "anonymous", self.kind == "anonymous")


def parts_of_key(key: str) -> tuple[str, str, str]:
    """Return the kind, the user and the client that a principal's key names.

    Each is "" where the key has none.
    """
    kind, _, rest = key.partition(_SEPARATOR)
    user, _, client = rest.partition(_SEPARATOR)
    return kind, user, client


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
    peer: str = ""
    """The address that has the connection, a proxy's where one stands in front."""
    extra: Mapping[str, object] = field(default_factory=dict)


class AuthenticationFailed(Exception):
    """The credentials are there and wrong: the request ends with 401."""
