"""What is demanded of whoever sees a definition or uses a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequirements:
    """Everything here has to hold.

    `permissions` are Django's ("shop.view_order"); of each set in `groups` the user is
    in one group at least, or is a superuser; `rules` are the keys of functions in code.
    """

    permissions: tuple[str, ...] = ()
    groups: tuple[frozenset[str], ...] = ()
    rules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.permissions or self.groups or self.rules)

    def and_also(self, others: AccessRequirements) -> AccessRequirements:
        """Return what is demanded where both are."""
        return AccessRequirements(
            permissions=tuple(dict.fromkeys((*self.permissions, *others.permissions))),
            groups=tuple(dict.fromkeys((*self.groups, *others.groups))),
            rules=tuple(dict.fromkeys((*self.rules, *others.rules))),
        )


NO_REQUIREMENTS = AccessRequirements()


def read_requirements(told: Mapping[str, Any]) -> AccessRequirements:
    """Return what a permission, groups and the key of a rule demand.

    What is not there, or is empty, demands nothing.
    """
    permission, rule = told.get("permission"), told.get("rule")
    groups = frozenset(told.get("groups") or ())
    if not (permission or groups or rule):
        return NO_REQUIREMENTS
    return AccessRequirements(
        permissions=(permission,) if permission else (),
        groups=(groups,) if groups else (),
        rules=(rule,) if rule else (),
    )
