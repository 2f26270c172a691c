"""Rules in code, and which demands a principal meets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_app.interface.access_requirements import AccessRequirements
from mcp_app.interface.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """What a rule is asked about.

    `user` is the active Django user behind the principal, a fresh row, or None.
    `arguments` are those of a call, as they fit the schema, or the variables of a
    template; None where lists are made: there nothing is called yet.  `name` is what is
    called, "" in lists.
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
    """A function of the site that says who may: blocking, in a thread.

    One that looks at `arguments` is asked at each call, too.
    """

    key: str
    judge: Judge = field(repr=False)
    arguments: bool = False
    object: bool = False
    """Whether it is about what one template shows, so that nothing else names it."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Which of a server's demands a principal meets.

    `gone` is true where its user does not exist any more, or may not log in.
    """

    met: frozenset[AccessRequirements] = frozenset()
    gone: bool = False

    def meet(self, demands: AccessRequirements | None) -> bool:
        """Whether all of that holds; nothing always does."""
        return not demands or demands in self.met


NOTHING = Rights()
