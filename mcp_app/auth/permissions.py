"""Which demands a principal meets: permissions, groups, rules of the site.

What is found is kept as long as no right changes, at most for half a minute.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import DatabaseError

from mcp_app.interface.principal import Principal
from mcp_app.interface.requirements import Demands
from mcp_app.interface.rights import Asked, Rights, Rule
from mcp_app.pools.database import judges, reader
from mcp_app.pools.outages import is_outage

logger = logging.getLogger("mcp_app.auth")

HARD_AGE = 30.0
"""Seconds after which rights are read again, whatever changed them."""
KEPT = 10_000


Key: TypeAlias = tuple[Principal, str, frozenset[Demands]]
"""Who asks, at which server, and for what: rights for less are no rights for more."""


class KeptRights:
    """Rights by principal and server; used on the loop only."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._kept: dict[Key, tuple[float, Rights]] = {}

    async def of(
        self, principal: Principal, server: str, demands: frozenset[Demands]
    ) -> Rights:
        """Return which of a server's demands the principal meets."""
        if (known := self.known(principal, server, demands)) is not None:
            return known
        now, keep = time.monotonic(), self._kept
        asking = partial(rights_of, principal, server, demands, self._rules)
        if any(each.rules for each in demands):
            rights = await judges.run(asking)
        elif principal.user_id:
            rights = await reader.run(asking)
        else:
            # Nobody's rights stand in no row, and no thread is needed for them.
            rights = asking()
        if len(keep) >= KEPT:
            keep.clear()
        keep[principal, server, demands] = (now, rights)
        return rights

    def known(
        self, principal: Principal, server: str, demands: frozenset[Demands]
    ) -> Rights | None:
        """Return what was found lately, None where it is to be asked."""
        kept = self._kept.get((principal, server, demands))
        if kept is not None and time.monotonic() - kept[0] < HARD_AGE:
            return kept[1]
        return None

    async def allow(self, keys: Iterable[str], asked: Asked) -> bool:
        """Whether those of these rules that look at arguments let a call happen."""
        rules = [self._rules.get(each) for each in dict.fromkeys(keys)]
        asking = [each for each in rules if each is not None and each.arguments]
        return not asking or await judges.run(_allowed, asking, asked)

    def forget(self) -> None:
        """Read all rights again at their next use."""
        # Another dict: what is being read at this moment must not be kept.
        self._kept = {}


def rights_of(
    principal: Principal,
    server: str,
    demands: Iterable[Demands],
    rules: Mapping[str, Rule],
) -> Rights:
    """Return which of these demands a principal meets on a server; blocks."""
    holder = Holder(principal, server, rules)
    asks_django = principal.permissions is None and principal.user_id
    if asks_django and holder.user is None:
        return GONE
    return Rights(frozenset(each for each in demands if holder.meets(each)))


GONE = Rights(gone=True)


class Holder:
    """What a principal has, as far as it is asked for; blocks.

    It is made for one look: nothing is asked for twice.
    """

    def __init__(
        self, principal: Principal, server: str, rules: Mapping[str, Rule]
    ) -> None:
        self._principal = principal
        self._server = server
        self._rules = rules
        self._judged: dict[str, bool] = {}

    @cached_property
    def user(self) -> Any:
        """The active user, None for nobody."""
        return _user(self._principal)

    @cached_property
    def _superuser(self) -> bool:
        return bool(getattr(self.user, "is_superuser", False))

    @cached_property
    def _groups(self) -> frozenset[str]:
        groups = getattr(self.user, "groups", None)
        return frozenset(groups.values_list("name", flat=True)) if groups else NO_GROUPS

    def meets(self, demands: Demands) -> bool:
        """Whether all of that holds."""
        return (
            all(map(self.has_permission, demands.permissions))
            and all(map(self.is_in_one_of, demands.groups))
            and all(map(self.satisfies, demands.rules))
        )

    def has_permission(self, permission: str) -> bool:
        """Whether Django grants it, or whoever authenticated the principal."""
        own = self._principal.permissions
        if own is not None:
            return permission in own
        has = getattr(self.user, "has_perm", None)
        return has is not None and bool(has(permission))

    def is_in_one_of(self, groups: Collection[str]) -> bool:
        """Whether the user is in a group of these; superusers are in all."""
        return self._superuser or not self._groups.isdisjoint(groups)

    def satisfies(self, key: str) -> bool:
        """Whether a rule lets the principal in; one that code lacks lets nobody in."""
        rule = self._rules.get(key)
        if rule is None:
            return False
        if key not in self._judged:
            asked = Asked(
                principal=self._principal, server=self._server, user=self.user
            )
            self._judged[key] = _judged(rule, asked)
        return self._judged[key]


NO_GROUPS: frozenset[str] = frozenset()


def _allowed(rules: Iterable[Rule], asked: Asked) -> bool:
    whole = replace(asked, user=_user(asked.principal))
    return all(_judged(rule, whole) for rule in rules)


def _judged(rule: Rule, asked: Asked) -> bool:
    """Ask a rule; one that fails lets nobody in, and an outage is told as one."""
    try:
        answer: object = rule.judge(asked)
    except BaseException as error:
        # What it raises to end its thread or its process is a failure like any other.
        if isinstance(error, DatabaseError) and is_outage(error):
            raise
        logger.exception("A rule failed.", extra={"rule": rule.key})
        return False
    if type(answer) is not bool:
        logger.error(
            "A rule returned %s: it must return True or False.",
            type(answer).__name__,
            extra={"rule": rule.key},
        )
    return answer is True


class UserRows:
    """The way from a principal to a fresh row of the user."""

    def user(self, principal: Principal) -> AbstractBaseUser | None:
        """Return the active user, None for nobody; blocks."""
        return _user(principal)


def _user(principal: Principal) -> AbstractBaseUser | None:
    return _active(pk=principal.user_id) if principal.user_id else None


def named(name: str) -> AbstractBaseUser | None:
    """Return the active user who logs in by this name; blocks."""
    return _active(**{get_user_model().USERNAME_FIELD: name})


def active_users(keys: Collection[Any]) -> dict[Any, AbstractBaseUser]:
    """Return those of these users who may log in, by their primary keys; blocks."""
    found = get_user_model()._default_manager.in_bulk(list(keys))
    return {key: user for key, user in found.items() if user.is_active}


def _active(**which: str) -> AbstractBaseUser | None:
    found: AbstractBaseUser | None
    try:
        found = get_user_model()._default_manager.filter(**which).first()
    except (TypeError, ValueError, ValidationError):
        # A site's callable may have keys of its own, which no user can have.
        return None
    return found if found is not None and found.is_active else None
