"""The table of the page *Who can see it*: 50 people per page, each with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import Condition
from mcp_app.admin.access.sentences import all_of, either, in_digits
from mcp_app.auth import permission_queries
from mcp_app.auth.permission_queries import KnownGroup
from mcp_app.interface.access_requirements import AccessRequirements
from mcp_app.interface.rules import visible

SHOWN: Final = 50
MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class People:
    """One page of the people who can, or of those who cannot.

    `number` is the page, counted from 1, and `pages` the number of pages.
    """

    shown: list[Person]
    can: bool
    number: int
    pages: int
    count_can: str
    count_cannot: str

    @property
    def before(self) -> int:
        return self.number - 1

    @property
    def after(self) -> int:
        return self.number + 1 if self.number < self.pages else 0


def people(
    conditions: Sequence[Condition],
    groups: Sequence[KnownGroup],
    *,
    demands: AccessRequirements,
    can: bool,
    page: str,
    counts: tuple[int, int],
) -> People:
    """Return a page of people; two queries, however many people there are."""
    total = counts[0] if can else counts[1]
    pages = max(1, -(-total // SHOWN))
    is_number = page.isascii() and page.isdigit() and len(page) <= MOST_DIGITS
    number = min(max(int(page) if is_number else 1, 1), pages)
    rows = _rows(conditions, can=can)[(number - 1) * SHOWN : number * SHOWN]
    why = Why(conditions, groups, demands)
    return People(
        [Person(visible(each.get_username()), why.of(each)) for each in rows],
        can,
        number,
        pages,
        in_digits(counts[0]),
        in_digits(counts[1]),
    )


def _rows(conditions: Sequence[Condition], *, can: bool) -> QuerySet[Any]:
    counted = [each.which for each in conditions if each.which is not None]
    meet: Q = reduce(and_, counted, permission_queries.active())
    columns = {
        f"mcp_holds_{place}": _whether(each.which)
        for place, each in enumerate(conditions)
        if each.which is not None
    }
    model = get_user_model()
    rows: QuerySet[Any] = permission_queries.users().filter(meet if can else ~meet)
    rows = rows.annotate(mcp_active=_whether(permission_queries.active()), **columns)
    if hasattr(model, "groups"):
        rows = rows.prefetch_related("groups")
    return rows.order_by(model.USERNAME_FIELD, "pk")


def _whether(condition: Q) -> Any:
    if not condition:
        return Value(True, output_field=BooleanField())
    return Case(
        When(condition, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )


class Why:
    """The reasons why people can or cannot see a row."""

    def __init__(
        self,
        conditions: Sequence[Condition],
        groups: Iterable[KnownGroup],
        demands: AccessRequirements,
    ) -> None:
        self._conditions = conditions
        self._groups = {each.pk: each for each in groups}
        self._demands = demands
        self._open = any(each.which is None for each in conditions)

    def of(self, user: Any) -> str:
        """Return the reason for a row of the table."""
        if not user.mcp_active:
            return _("cannot: may not log in")
        lacks = [
            each.lack
            for place, each in enumerate(self._conditions)
            if not getattr(user, f"mcp_holds_{place}", True)
        ]
        if lacks:
            return _("cannot: %(reasons)s") % {"reasons": all_of(dict.fromkeys(lacks))}
        can = self._can(user)
        if self._open:
            return _("%(reason)s; the rest must be checked") % {"reason": can}
        return can

    def _can(self, user: Any) -> str:
        if not (self._demands.permissions or self._demands.groups):
            return _("no right is required")
        if getattr(user, "is_superuser", False):
            return _("superuser")
        own = [
            self._groups[each.pk]
            for each in (user.groups.all() if hasattr(user, "groups") else ())
            if each.pk in self._groups
        ]
        return all_of(dict.fromkeys([*self._by_permission(own), *self._by_group(own)]))

    def _by_permission(self, own: Collection[KnownGroup]) -> Iterator[str]:
        for permission in self._demands.permissions:
            through = [each.name for each in own if permission in each.grants]
            named = {"permission": visible(permission), "groups": either(through)}
            if through:
                yield _("in %(groups)s, which has %(permission)s") % named
            else:
                yield _("has %(permission)s") % named

    def _by_group(self, own: Collection[KnownGroup]) -> Iterator[str]:
        granting = {each.name for each in own if each.grants}
        for names in self._demands.groups:
            in_these = [each.name for each in own if each.name in names]
            # The reason for a permission has already named the group.
            if granting.isdisjoint(in_these):
                yield _("in %(groups)s") % {"groups": either(in_these)}
