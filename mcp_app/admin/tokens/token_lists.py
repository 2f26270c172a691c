"""The list of access tokens: its columns, and filters by fixed lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from mcp_app.account import shown
from mcp_app.account.shown import Said
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken

SOON: Final = timedelta(days=7)
LONG: Final = timedelta(days=90)
"""What was not used for so long may not be needed any more."""


def _good(now: datetime) -> Q:
    goes_on = Q(expires=None) | Q(expires__gt=now)
    return goes_on & Q(revoked=None, user__is_active=True)


STATES: Final[dict[str, tuple[Said, Callable[[datetime], Q]]]] = {
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
    """By how a token stands now."""

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
    """What lists and forms say of a token."""

    @admin.display(description=gettext_lazy("starts with"))
    def begins(self, row: AccessToken) -> str:
        return shown.begins_of(row)

    @admin.display(description=gettext_lazy("whose"))
    def whose(self, row: AccessToken) -> str:
        return visible(row.user.get_username())

    @admin.display(description=gettext_lazy("servers"))
    def where(self, row: AccessToken) -> str:
        return shown.servers_of(row)

    @admin.display(description=gettext_lazy("may"), ordering="may")
    def may_do(self, row: AccessToken) -> str:
        return row.get_may_display()

    @admin.display(description=gettext_lazy("made"), ordering="created")
    def made(self, row: AccessToken) -> str:
        return shown.when(row.created)

    @admin.display(description=gettext_lazy("ends"), ordering="expires")
    def ends(self, row: AccessToken) -> str:
        return shown.ends_of(row)

    @admin.display(description=gettext_lazy("last used"), ordering="used")
    def last_used(self, row: AccessToken) -> str:
        return shown.last_use_of(row)
