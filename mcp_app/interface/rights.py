"""What is demanded of whoever sees a definition or uses a server, and who meets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mcp_app.interface.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Everything here has to hold.

    `permissions` are Django's ("shop.view_order"); of each set in `groups` the user is
    in one group at least, or is a superuser; `rules` are the keys of functions in code.
    """

    permissions: tuple[str, ...] = ()
    groups: tuple[frozenset[str], ...] = ()
    rules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.permissions or self.groups or self.rules)

    def and_also(self, others: Demands) -> Demands:
        """Return what is demanded where both are."""
        return Demands(
            permissions=tuple(dict.fromkeys((*self.permissions, *others.permissions))),
            groups=tuple(dict.fromkeys((*self.groups, *others.groups))),
            rules=tuple(dict.fromkeys((*self.rules, *others.rules))),
        )


NO_DEMANDS = Demands()


def demanded(told: Mapping[str, Any]) -> Demands:
    """Return what a permission, groups and the key of a rule demand.

    What is not there, or is empty, demands nothing.
    """
    permission, rule = told.get("permission"), told.get("rule")
    groups = frozenset(told.get("groups") or ())
    if not (permission or groups or rule):
        return NO_DEMANDS
    return Demands(
        permissions=(permission,) if permission else (),
        groups=(groups,) if groups else (),
        rules=(rule,) if rule else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


Judge: TypeAlias = Callable[[Asked], bool]


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

    met: frozenset[Demands] = frozenset()
    gone: bool = False

    def meet(self, demands: Demands | None) -> bool:
        """Whether all of that holds; nothing always does."""
        return not demands or demands in self.met


NOTHING = Rights()
