"""The columns and filters of the list of access tokens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from mcp_app.account import presentation
from mcp_app.interface.labels import Label
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken

SOON: Final = timedelta(days=7)
LONG: Final = timedelta(days=90)
"""A token that was not used for this long may no longer be needed."""


def _good(now: datetime) -> Q:
    goes_on = Q(expires=None) | Q(expires__gt=now)
    return goes_on & Q(revoked=None, user__is_active=True)


STATES: Final[dict[str, tuple[Label, Callable[[datetime], Q]]]] = {
    "good": (gettext_lazy("Good"), _good),
    "soon": (
        gettext_lazy("End within 7 days"),
        lambda now: _good(now) & Q(expires__lte=now + SOON),
    ),
    "unused": (
        gettext_lazy("Not used for 90 days"),
        lambda now: (
            _good(now) & (Q(used__lt=now - LONG) | Q(used=None, created__lt=now - LONG))
        ),
    ),
    "revoked": (gettext_lazy("Revoked"), lambda now: Q(revoked__isnull=False)),
    "expired": (
        gettext_lazy("Expired"),
        lambda now: Q(revoked=None, expires__lte=now),
    ),
    "stopped": (
        gettext_lazy("Stopped: the owner cannot log in"),
        lambda now: (
            Q(revoked=None, user__is_active=False)
            & (Q(expires=None) | Q(expires__gt=now))
        ),
    ),
}


class TokenStateFilter(admin.SimpleListFilter):
    """Filters by the current state of a token."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, str(label)) for name, (label, _rows) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value()
        if asked not in STATES:
            return queryset
        return queryset.filter(STATES[asked][1](timezone.now()))


class TokenColumns:
    """What lists and forms show of a token."""

    @admin.display(description=gettext_lazy("starts with"))
    def begins(self, row: AccessToken) -> str:
        return presentation.begins_of(row)

    @admin.display(description=gettext_lazy("whose"))
    def whose(self, row: AccessToken) -> str:
        return visible(row.user.get_username())

    @admin.display(description=gettext_lazy("servers"))
    def where(self, row: AccessToken) -> str:
        return presentation.servers_of(row)

    @admin.display(description=gettext_lazy("may"), ordering="may")
    def may_do(self, row: AccessToken) -> str:
        return row.get_may_display()

    @admin.display(description=gettext_lazy("made"), ordering="created")
    def created_at(self, row: AccessToken) -> str:
        return presentation.when(row.created)

    @admin.display(description=gettext_lazy("ends"), ordering="expires")
    def ends(self, row: AccessToken) -> str:
        return presentation.ends_of(row)

    @admin.display(description=gettext_lazy("last used"), ordering="used")
    def last_used(self, row: AccessToken) -> str:
        return presentation.last_use_of(row)
