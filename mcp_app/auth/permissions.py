"""Which requirements a principal meets: permissions, groups, rules of the site.

The answers are cached until a permission changes, for half a minute at most.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError

from mcp_app.auth.caches import AgedCache
from mcp_app.auth.users import UserRows
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    AccessRequest,
    Principal,
    Rights,
    Rule,
)
from mcp_app.interface.rules import AccessRequirements
from mcp_app.pools.connections import is_outage
from mcp_app.pools.database import judges, reader

logger = logging.getLogger("mcp_app.auth")

Key: TypeAlias = tuple[Principal, str, frozenset[AccessRequirements]]
"""The principal, the slug of the server, and the requirements."""


class RightsCache(AgedCache[Key, Rights]):
    """Rights by principal and server; used on the loop only."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__()
        self._rules = rules

    async def find(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> Rights:
        """Return which of a server's requirements the principal meets."""
        read = partial(self._read_rights, principal, server, demands)
        return await self.find_or_load((principal, server, demands), read)

    async def _read_rights(
        self, principal: Principal, server: str, demands: frozenset[AccessRequirements]
    ) -> Rights:
        asking = partial(rights_of, principal, server, demands, self._rules)
        if any(demand.rules for demand in demands):
            return await judges.run(asking)
        if principal.user_id:
            return await reader.run(asking)
        # Without a user there is no row to read, and no thread is needed.
        return asking()

    async def allows_call(self, keys: Iterable[str], request: AccessRequest) -> bool:
        """Whether the rules that look at arguments let a call happen."""
        rules = [self._rules.get(each) for each in dict.fromkeys(keys)]
        asking = [rule for rule in rules if rule is not None and rule.arguments]
        return not asking or await judges.run(_all_rules_allow, asking, request)


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
        return Rights(gone=True)
    return Rights(frozenset(filter(holder.meets_demands, demands)))


class Holder:
    """What a principal has, read when it is needed; blocks.

    It is made for one decision: nothing is read twice.
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
        return UserRows().active_user(self._principal)

    @cached_property
    def _group_names(self) -> frozenset[str]:
        groups = getattr(self.user, "groups", None)
        return frozenset(groups.values_list("name", flat=True) if groups else ())

    def meets_demands(self, demands: AccessRequirements) -> bool:
        """Whether the principal meets all these requirements."""
        return (
            all(map(self.has_permission, demands.permissions))
            and all(map(self.is_in_one_of, demands.groups))
            and all(map(self.satisfies, demands.rules))
        )

    def has_permission(self, permission: str) -> bool:
        """Whether Django grants a permission, or the principal brought it along."""
        if (permissions := self._principal.permissions) is not None:
            return permission in permissions
        has = getattr(self.user, "has_perm", None)
        return has is not None and bool(has(permission))

    def is_in_one_of(self, groups: Collection[str]) -> bool:
        """Whether the user is in a group of these; superusers are in all."""
        if getattr(self.user, "is_superuser", False):
            return True
        return not self._group_names.isdisjoint(groups)

    def satisfies(self, key: str) -> bool:
        """Whether a rule lets the principal in; a missing rule lets nobody in."""
        rule = self._rules.get(key)
        if rule is None:
            return False
        if key not in self._judged:
            request = AccessRequest(
                principal=self._principal, server=self._server, user=self.user
            )
            self._judged[key] = _judge_rule(rule, request)
        return self._judged[key]


def holder_by_token(
    user: AbstractBaseUser, server: str, rules: Mapping[str, Rule]
) -> Holder:
    """Return what a user has by an access token, if the user's row is already read."""
    principal = Principal(
        kind=ACCESS_TOKEN, user_id=str(user.pk), user_name=user.get_username()
    )
    holder = Holder(principal, server, rules)
    holder.user = user if user.is_active else None
    return holder


def _all_rules_allow(rules: Iterable[Rule], request: AccessRequest) -> bool:
    request_with_user = replace(request, user=UserRows().active_user(request.principal))
    return all(_judge_rule(rule, request_with_user) for rule in rules)


def _judge_rule(rule: Rule, request: AccessRequest) -> bool:
    """Ask a rule; a rule that fails lets nobody in, but an outage is raised."""
    try:
        answer: object = rule.judge(request)
    except BaseException as error:
        # A SystemExit or KeyboardInterrupt of a rule is only a failure, too.
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
