"""Which requirements a principal meets: permissions, groups, rules of the site.

The answers are cached until a permission changes, for half a minute at most.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

from django.contrib import auth
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AbstractBaseUser, Permission, PermissionsMixin
from django.core.exceptions import FieldDoesNotExist, FieldError, ValidationError
from django.db import DatabaseError
from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, When
from django.utils.translation import gettext as _

from mcp_app.auth.caches import AgedCache
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    AccessRequest,
    Principal,
    Rights,
    Rule,
)
from mcp_app.interface.rules import AccessRequirements, visible
from mcp_app.pools.connections import is_outage
from mcp_app.pools.database import judges, reader

# -- permission queries ----------------------------------------------------------------
# Who meets demands, as conditions on the table of users: counted, not asked singly.
#
# Each condition says of a user what `Holder` says.  Where Django cannot tell it of many
# at once there is none, and a person has to be looked at alone.

EVERYBODY: Final = Q()
NOBODY: Final = Q(pk__in=[])
MOST_GROUPS: Final = 500
"""Groups that one look reads besides those that are named."""
_GRANTING: Final = (
    "has_perm",
    "get_user_permissions",
    "get_group_permissions",
    "get_all_permissions",
)
_ONLY_OBJECTS: Final = frozenset({"guardian.backends.ObjectPermissionBackend"})
"""Backends that grant nothing but for single objects."""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group that demands name, or that has a permission which they ask for.

    `grants_permissions` are those permissions; `people` is how many active users are in
    it.
    """

    pk: Any
    name: str
    people: int
    grants: frozenset[str]

    @property
    def name_to_show(self) -> str:
        """The name, with its hidden characters to be seen."""
        return visible(self.name)


def all_users() -> QuerySet[Any]:
    """Return all users, as those who ask are looked up."""
    return auth.get_user_model()._default_manager.all()


def active_condition() -> Q:
    """Return who may log in."""
    model = auth.get_user_model()
    if _find_field(model, "is_active") is not None:
        return Q(is_active=True)
    return EVERYBODY if getattr(model, "is_active", True) else NOBODY


def superusers() -> Q:
    """Return who has every permission and counts as being in every group."""
    there = _find_field(auth.get_user_model(), "is_superuser")
    return NOBODY if there is None else Q(is_superuser=True)


def with_permission(permission: str) -> Q | None:
    """Return who has a permission; None where a backend cannot list them."""
    has_perm = getattr(auth.get_user_model(), "has_perm", None)
    if has_perm is None:
        return NOBODY
    if has_perm is not PermissionsMixin.has_perm or uncounted_backends():
        return None
    condition = superusers()
    for backend in auth.get_backends():
        if grants_permissions(backend):
            try:
                holders = backend.with_perm(permission)  # type: ignore[attr-defined]
            except (TypeError, ValueError, FieldError):
                # Django's own looks for `active_user` from the side of the permissions.
                return None
            condition |= Q(pk__in=holders.values("pk"))
    return condition


def uncounted_backends() -> list[str]:
    """Return the backends that may grant a permission and cannot say to whom."""
    return [
        _dotted_path(each) for each in auth.get_backends() if not _lists_holders(each)
    ]


def grants_permissions(backend: object) -> bool:
    """Whether a backend may give anybody a permission that is about no object."""
    if _dotted_path(backend) in _ONLY_OBJECTS:
        return False
    has_perm = getattr(type(backend), "has_perm", None)
    return has_perm is not None and any(
        getattr(type(backend), name, None) is not getattr(BaseBackend, name)
        for name in _GRANTING
    )


def _lists_holders(backend: object) -> bool:
    """Whether `with_perm` of a backend is as new as what it says of one user."""
    if not grants_permissions(backend):
        return True
    for each in type(backend).__mro__:
        if "with_perm" in vars(each):
            return True
        if not vars(each).keys().isdisjoint(_GRANTING):
            break
    return False


def _dotted_path(backend: object) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


def in_groups(names: Collection[str], known: Iterable[KnownGroup]) -> Q:
    """Return who is in one of these groups; superusers are in all."""
    keys = [each.pk for each in known if each.name in names]
    if not keys:
        return superusers()
    members = all_users().filter(groups__in=keys)
    return Q(pk__in=members.values("pk")) | superusers()


def permission_labels(permissions: Collection[str]) -> list[str]:
    """Return what Django calls permissions: “Can view order”; one query.

    What does not exist is called as it is written.
    """
    codenames = {each.partition(".")[2] for each in permissions}
    rows = Permission.objects.filter(codename__in=codenames)
    columns = ("content_type__app_label", "codename", "name")
    found = rows.values_list(*columns) if codenames else ()
    names = {f"{app}.{codename}": name for app, codename, name in found}
    return [visible(names.get(each, each)) for each in permissions]


def known_groups(demands: AccessRequirements) -> list[KnownGroup]:
    """Return the groups that matter to demands, those that they name first."""
    field = _find_field(auth.get_user_model(), "groups")
    names = frozenset[str]().union(*demands.groups)
    if field is None or not (names or demands.permissions):
        return []
    granted = {
        f"mcp_grants_{place}": permission
        for place, permission in enumerate(demands.permissions)
    }
    matters = Q(name__in=names)
    for column in granted:
        matters |= Q(**{column: True})
    demanded_first = Case(When(name__in=names, then=0), default=1)
    groups = _groups_with_grants(field, granted).filter(matters)
    rows = groups.order_by(demanded_first, "name")[: MOST_GROUPS + len(names)]
    known = [
        KnownGroup(
            row.pk,
            row.name,
            row.mcp_people,
            frozenset(granted[each] for each in granted if getattr(row, each)),
        )
        for row in rows
    ]
    # A database may take two names that differ by a letter's case for the same.
    return [each for each in known if each.grants or each.name in names]


def _groups_with_grants(field: Any, granted: Mapping[str, str]) -> QuerySet[Any]:
    members, model = field.related_query_name(), field.related_model
    there = _find_field(auth.get_user_model(), "is_active")
    may_log_in = None if there is None else Q(**{f"{members}__is_active": True})
    columns: dict[str, Any] = {
        "mcp_people": Count(members, filter=may_log_in, distinct=True)
    }
    for column, permission in granted.items():
        app, _, codename = permission.partition(".")
        holding = model._default_manager.filter(
            pk=OuterRef("pk"),
            permissions__content_type__app_label=app,
            permissions__codename=codename,
        )
        columns[column] = Exists(holding)
    groups: QuerySet[Any] = model._default_manager.annotate(**columns)
    return groups


def _find_field(model: type[Model], name: str) -> Any:
    try:
        return model._meta.get_field(name)
    except FieldDoesNotExist:
        return None


# -- permissions -----------------------------------------------------------------------

logger = logging.getLogger("mcp_app.auth")

Key: TypeAlias = tuple[Principal, str, frozenset[AccessRequirements]]
"""Who asks, at which server, and for what: rights for less are no rights for more."""


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
        if any(each.rules for each in demands):
            return await judges.run(asking)
        if principal.user_id:
            return await reader.run(asking)
        # Without a user there is no row to read, and no thread is needed.
        return asking()

    async def allows_call(self, keys: Iterable[str], request: AccessRequest) -> bool:
        """Whether those of these rules that look at arguments let a call happen."""
        rules = [self._rules.get(each) for each in dict.fromkeys(keys)]
        asking = [each for each in rules if each is not None and each.arguments]
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
        return _user_of_principal(self._principal)

    @cached_property
    def _group_names(self) -> frozenset[str]:
        groups = getattr(self.user, "groups", None)
        return frozenset(groups.values_list("name", flat=True) if groups else ())

    def meets_demands(self, demands: AccessRequirements) -> bool:
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
        if getattr(self.user, "is_superuser", False):
            return True
        return not self._group_names.isdisjoint(groups)

    def satisfies(self, key: str) -> bool:
        """Whether a rule lets the principal in; one that code lacks lets nobody in."""
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
    """Return what a user whose row is read already has by an access token."""
    principal = Principal(
        kind=ACCESS_TOKEN, user_id=str(user.pk), user_name=user.get_username()
    )
    holder = Holder(principal, server, rules)
    holder.user = user if user.is_active else None
    return holder


def _all_rules_allow(rules: Iterable[Rule], request: AccessRequest) -> bool:
    whole = replace(request, user=_user_of_principal(request.principal))
    return all(_judge_rule(rule, whole) for rule in rules)


def _judge_rule(rule: Rule, request: AccessRequest) -> bool:
    """Ask a rule; one that fails lets nobody in, and an outage is told as one."""
    try:
        answer: object = rule.judge(request)
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

    def active_user(self, principal: Principal) -> AbstractBaseUser | None:
        """Return the active user, None for nobody; blocks."""
        return _user_of_principal(principal)


def _user_of_principal(principal: Principal) -> AbstractBaseUser | None:
    return _active(pk=principal.user_id) if principal.user_id else None


def find_user(name: str) -> AbstractBaseUser | None:
    """Return the active user who logs in by this name; blocks."""
    return _active(**{get_user_model().USERNAME_FIELD: name})


def no_such_user(name: str) -> str:
    """Say that no active user logs in by this name, and by what users log in."""
    message = _("There is no active user whose %(field)s is “%(name)s”.")
    return message % {"field": get_user_model().USERNAME_FIELD, "name": visible(name)}


def active_users(keys: Collection[Any]) -> dict[Any, AbstractBaseUser]:
    """Return those of these users who may log in, by their primary keys; blocks."""
    rows = get_user_model()._default_manager.in_bulk(list(keys))
    return {key: user for key, user in rows.items() if user.is_active}


def _active(**which: str) -> AbstractBaseUser | None:
    user: AbstractBaseUser | None
    try:
        user = get_user_model()._default_manager.filter(**which).first()
    except (TypeError, ValueError, ValidationError):
        # A site's callable may have keys of its own, which no user can have.
        return None
    return user if user is not None and user.is_active else None
