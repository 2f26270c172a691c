"""Conditions on the user table: which users meet requirements, counted by the database.

Each condition agrees with `Holder`.  If Django cannot answer for many users at once,
there is no condition, and each user must be examined alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import auth
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import Permission, PermissionsMixin
from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db.models import Case, Count, Exists, Model, OuterRef, Q, QuerySet, When

from mcp_app.interface.rules import AccessRequirements, visible

EVERYBODY: Final = Q()
NOBODY: Final = Q(pk__in=[])
MOST_GROUPS: Final = 500
"""Groups that one query reads besides those that requirements name."""
_GRANTING: Final = (
    "has_perm",
    "get_user_permissions",
    "get_group_permissions",
    "get_all_permissions",
)
_ONLY_OBJECTS: Final = frozenset({"guardian.backends.ObjectPermissionBackend"})
"""Backends that grant permissions for single objects only."""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group that requirements name, or that has a permission that they require.

    `grants` are those permissions; `people` is the number of active users in it.
    """

    pk: Any
    name: str
    people: int
    grants: frozenset[str]

    @property
    def name_to_show(self) -> str:
        """The name, with its hidden characters made visible."""
        return visible(self.name)


def all_users() -> QuerySet[Any]:
    """Return all users, by the manager that also looks up callers."""
    return auth.get_user_model()._default_manager.all()


def active_condition() -> Q:
    """Return the condition for users who may log in."""
    model = auth.get_user_model()
    if _find_field(model, "is_active") is not None:
        return Q(is_active=True)
    return EVERYBODY if getattr(model, "is_active", True) else NOBODY


def superusers() -> Q:
    """Return the condition for superusers: they have all permissions and groups."""
    field = _find_field(auth.get_user_model(), "is_superuser")
    return NOBODY if field is None else Q(is_superuser=True)


def with_permission(permission: str) -> Q | None:
    """Return the condition for a permission; None if a backend cannot list users."""
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
                # Django's own backend needs the usual relations of a user model.
                return None
            condition |= Q(pk__in=holders.values("pk"))
    return condition


def uncounted_backends() -> list[str]:
    """Return the backends that may grant a permission and cannot say to whom."""
    return [
        _dotted_path(each) for each in auth.get_backends() if not _lists_holders(each)
    ]


def grants_permissions(backend: object) -> bool:
    """Whether a backend may grant permissions that are not for single objects."""
    if _dotted_path(backend) in _ONLY_OBJECTS:
        return False
    has_perm = getattr(type(backend), "has_perm", None)
    return has_perm is not None and any(
        getattr(type(backend), name, None) is not getattr(BaseBackend, name)
        for name in _GRANTING
    )


def _lists_holders(backend: object) -> bool:
    """Whether `with_perm` is at or below the class that answers about one user."""
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


def in_groups(names: Collection[str], groups: Iterable[KnownGroup]) -> Q:
    """Return the condition for users in one of these groups; superusers are in all."""
    keys = [each.pk for each in groups if each.name in names]
    if not keys:
        return superusers()
    return Q(pk__in=all_users().filter(groups__in=keys).values("pk")) | superusers()


def permission_labels(permissions: Collection[str]) -> list[str]:
    """Return Django's names of permissions, such as “Can view order”; one query.

    A permission that does not exist is returned as it is written.
    """
    codenames = {permission.partition(".")[2] for permission in permissions}
    rows = Permission.objects.filter(codename__in=codenames)
    columns = ("content_type__app_label", "codename", "name")
    values = rows.values_list(*columns) if codenames else ()
    names = {f"{app}.{codename}": name for app, codename, name in values}
    return [visible(names.get(permission, permission)) for permission in permissions]


def known_groups(demands: AccessRequirements) -> list[KnownGroup]:
    """Return the groups that matter to requirements, those that they name first."""
    field = _find_field(auth.get_user_model(), "groups")
    names = frozenset[str]().union(*demands.groups)
    if field is None or not (names or demands.permissions):
        return []
    granted = {
        f"mcp_grants_{index}": permission
        for index, permission in enumerate(demands.permissions)
    }
    matters = Q(name__in=names)
    for column in granted:
        matters |= Q(**{column: True})
    demanded_first = Case(When(name__in=names, then=0), default=1)
    groups = _groups_with_grants(field, granted).filter(matters)
    rows = groups.order_by(demanded_first, "name")[: MOST_GROUPS + len(names)]
    known_groups = [
        KnownGroup(
            row.pk,
            row.name,
            row.mcp_people,
            frozenset(granted[each] for each in granted if getattr(row, each)),
        )
        for row in rows
    ]
    # A database may call two names equal that differ in the case of a letter.
    return [each for each in known_groups if each.grants or each.name in names]


def _groups_with_grants(field: Any, granted: Mapping[str, str]) -> QuerySet[Any]:
    members, model = field.related_query_name(), field.related_model
    active_field = _find_field(auth.get_user_model(), "is_active")
    may_log_in = None if active_field is None else Q(**{f"{members}__is_active": True})
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
