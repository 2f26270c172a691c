"""Who is asking: the user and the client behind a request, and what they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from mcp_app.interface.definitions import Definition, OurTool, ToolDefinition
from mcp_app.interface.rules import AccessRequirements
from mcp_app.protocol.headers import Headers

_SEPARATOR = "\x1f"

ACCESS_TOKEN = "access-token"  # noqa: S105 - the kind, no token
DRF = "drf"
ISSUER = "issuer"
SESSION = "session"
STDIO = "stdio"
CONSOLE = "console"
ANONYMOUS = "anonymous"
RESERVED_KINDS = frozenset(
    {ACCESS_TOKEN, DRF, ISSUER, SESSION, STDIO, CONSOLE, ANONYMOUS}
)
"""Kinds of this package: a callable that claimed one would get others' sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a credential reaches, of all that its bearer's rights allow.

    With `tags` it reaches only definitions that have one of them.  With `tools` it
    reaches only these, by name, and our tools that find tools and fetch results.
    """

    read_only: bool = False
    tags: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()

    def includes(self, definition: Definition) -> bool:
        """Whether the credential reaches a definition."""
        if self.read_only and not definition.only_reads:
            return False
        if self.tools and not isinstance(definition, OurTool):
            is_tool = isinstance(definition, ToolDefinition)
            if not is_tool or definition.name not in self.tools:
                return False
        return not self.tags or bool(self.tags & definition.tags)

    def lacks_change(self, definition: Definition) -> bool:
        """Whether a definition is hidden only because it changes something."""
        with_changes = replace(self, read_only=False)
        return with_changes.includes(definition) and not self.includes(definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The user and the client behind a request, or nobody.

    `user_id` is the primary key of the Django user as text, "" for none; `client`
    is the token's family, "session", the path of a class of Django REST framework, the
    name of an issuer's entry with that of its client, "stdio", in the console the name
    of who tries, or what a site's callable says.  A callable cannot say one of
    `RESERVED_KINDS`.  If `permissions` is None, those that Django has for the user
    count; a set replaces these.  If `scope` is None, it limits nothing.
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
    person: str = field(init=False, repr=False)
    """Who is counted for call rates: the user, else this principal; "" if anonymous."""
    owner: str = field(init=False, repr=False)
    """The key by which running calls are counted; "" if it is anonymous."""

    def __post_init__(self) -> None:
        if self.permissions is not None:
            object.__setattr__(self, "permissions", frozenset(self.permissions))
        object.__setattr__(self, "user_id", str(self.user_id or ""))
        if _SEPARATOR in self.kind or _SEPARATOR in self.user_id:
            # Otherwise two principals could have the same key.
            raise ValueError("A kind or a user id has the character U+001F.")
        key = _SEPARATOR.join((self.kind, self.user_id, self.client))
        object.__setattr__(self, "key", key)
        nobody = self.kind == ANONYMOUS or (self.kind == CONSOLE and not self.user_id)
        object.__setattr__(self, "anonymous", nobody)
        # The first letter tells a user's key from that of a principal without a user.
        person = f"u{self.user_id}" if self.user_id else f"p{key}"
        object.__setattr__(self, "person", "" if nobody else person)
        object.__setattr__(self, "owner", "" if nobody else key)

    def __hash__(self) -> int:
        # Python keeps the hash of a text; equal principals have the same key.
        return hash(self.key)


def parts_of_key(key: str) -> tuple[str, str, str]:
    """Return the kind, the user and the client that a principal's key names.

    Each is "" if the key has none.
    """
    kind, _, user_and_client = key.partition(_SEPARATOR)
    user, _, client = user_and_client.partition(_SEPARATOR)
    return kind, user, client


Principal.ANONYMOUS = Principal(kind=ANONYMOUS, permissions=frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRequest:
    """What an authentication callable of `MCP["AUTHENTICATION"]` gets to see.

    The callable returns a `Principal`, None for "not mine", or raises
    `AuthenticationFailed`, or `AuthenticationUnavailable` where it cannot know.
    """

    headers: Headers
    host: str
    path: str
    server: str
    method: str = "POST"
    peer: str = ""
    """The address at the other end of the connection: a proxy's if one is in front."""
    scheme: str = "http"
    """The scheme of the connection; the client may use another one to a proxy."""
    extra: Mapping[str, object] = field(default_factory=dict)


class AuthenticationFailed(Exception):
    """The credentials are there and wrong: the request ends with 401."""


class AuthenticationUnavailable(Exception):
    """The credentials cannot be checked now: 503, because 401 would say "wrong".

    `retry_after`, for the header Retry-After, is in seconds.
    """

    def __init__(self, message: str = "", *, retry_after: int = 5) -> None:
        super().__init__(message)
        self.retry_after = retry_after


# -- rights ----------------------------------------------------------------------------
# Rules in code, and which demands a principal meets.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """What a rule is asked about.

    `user` is the active Django user behind the principal, a fresh row, or None.
    `arguments` are those of a call, as they fit the schema, or the variables of a
    template; None if a list is made, because nothing is called yet.  `name` is what is
    called, "" for a list.
    """

    principal: Principal
    server: str
    user: Any = None
    name: str = ""
    arguments: Mapping[str, object] | None = None

    @classmethod
    def of_user(cls, user: Any) -> AccessRequest:
        """Return what is asked for somebody who tries something in the admin; blocks.

        `user` is a Django user, also an anonymous one.
        """
        principal = Principal(
            kind="session",
            user_id=str(user.pk),
            user_name=user.get_username(),
            permissions=frozenset(user.get_all_permissions()),
        )
        return cls(principal=principal, server="", user=user)


Judge: TypeAlias = Callable[[AccessRequest], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A function of the site that decides who has access; it may block, in a thread.

    A rule that looks at `arguments` is asked at each call, too.
    """

    key: str
    judge: Judge = field(repr=False)
    arguments: bool = False
    object: bool = False
    """Whether it is about objects of one template: no other definition names it."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Which of a server's demands a principal meets.

    `gone` is true if its user does not exist any more, or may not log in.
    """

    met: frozenset[AccessRequirements] = frozenset()
    gone: bool = False

    def meets_demands(self, demands: AccessRequirements | None) -> bool:
        """Whether the principal meets all demands; True without any."""
        return not demands or demands in self.met


NOTHING = Rights()
"""The rights of a principal who meets no demands."""
