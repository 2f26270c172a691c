"""Which requirements a principal meets: permissions, groups, rules of the site.

The answers are cached until a permission changes, for half a minute at most.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.utils.translation import gettext as _

from mcp_app.auth.aged_cache import AgedCache
from mcp_app.interface.access_requirements import AccessRequirements
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rights import AccessRequest, Rights, Rule
from mcp_app.interface.rules import visible
from mcp_app.pools.database import judges, reader
from mcp_app.pools.outages import is_outage

logger = logging.getLogger("mcp_app.auth")

Key: TypeAlias = tuple[Principal, str, frozenset[AccessRequirements]]
"""Who asks, at which server, and for what: rights for less are no rights for more."""


class RightsCache:
    """Rights by principal and server; used on the loop only."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._entries: AgedCache[Key, Rights] = AgedCache()

    def cached(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> Rights | None:
        """Return the cached rights of a principal, None if they must be read."""
        return self._entries.cached((principal, server, demands))

    def good_until(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> float:
        """Return when cached rights get too old (monotonic); -inf if there are none."""
        return self._entries.good_until((principal, server, demands))

    async def find(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> Rights:
        """Return which of a server's requirements the principal meets."""
        read = partial(self._read, principal, server, demands)
        return await self._entries.find((principal, server, demands), read)

    async def _read(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> Rights:
        asking = partial(rights_of, principal, server, demands, self._rules)
        if any(each.rules for each in demands):
            return await judges.run(asking)
        if principal.user_id:
            return await reader.run(asking)
        # Without a user there is no row to read, and no thread is needed.
        return asking()

    async def allow(self, keys: Iterable[str], asked: AccessRequest) -> bool:
        """Whether those of these rules that look at arguments let a call happen."""
        rules = [self._rules.get(each) for each in dict.fromkeys(keys)]
        asking = [each for each in rules if each is not None and each.arguments]
        return not asking or await judges.run(_allowed, asking, asked)

    def forget(self) -> None:
        """Read all rights again at their next use."""
        self._entries.forget()


def rights_of(
    principal: Principal,
    server: str,
    demands: Iterable[AccessRequirements],
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

    def meets(self, demands: AccessRequirements) -> bool:
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
            asked = AccessRequest(
                principal=self._principal, server=self._server, user=self.user
            )
            self._judged[key] = _judged(rule, asked)
        return self._judged[key]


NO_GROUPS: frozenset[str] = frozenset()


def holder_by_token(
    user: AbstractBaseUser, server: str, rules: Mapping[str, Rule]
) -> Holder:
    """Return what a user whose row is read already has by an access token."""
    principal = Principal(
        kind=ACCESS_TOKEN, user_id=str(user.pk), user_name=user.get_username()
    )
    holder = Holder(principal, server, rules)
    holder.user = user if user.is_active else None
    return holder


def _allowed(rules: Iterable[Rule], asked: AccessRequest) -> bool:
    whole = replace(asked, user=_user(asked.principal))
    return all(_judged(rule, whole) for rule in rules)


def _judged(rule: Rule, asked: AccessRequest) -> bool:
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


def find_user(name: str) -> AbstractBaseUser | None:
    """Return the active user who logs in by this name; blocks."""
    return _active(**{get_user_model().USERNAME_FIELD: name})


def no_such_user(name: str) -> str:
    """Say that no active user logs in by this name, and by what users log in."""
    said = _("There is no active user whose %(field)s is “%(name)s”.")
    return said % {"field": get_user_model().USERNAME_FIELD, "name": visible(name)}


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
