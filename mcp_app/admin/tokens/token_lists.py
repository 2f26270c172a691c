"""The columns and filters of the list of access tokens and connected apps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account import app_presentation, presentation
from mcp_app.interface.labels import Label
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken

SOON: Final = timedelta(days=7)
MONTH: Final = timedelta(days=30)
LONG: Final = timedelta(days=90)
"""A token that was not used for this long may no longer be needed."""


def _good(now: datetime) -> Q:
    goes_on = Q(expires=None) | Q(expires__gt=now)
    return goes_on & Q(revoked=None, user__is_active=True)


def _unused(since: datetime) -> Q:
    return Q(used__lt=since) | Q(used=None, created__lt=since)


STATES: Final[dict[str, tuple[Label, Callable[[datetime], Q]]]] = {
    "good": (gettext_lazy("Good"), _good),
    "soon": (
        gettext_lazy("End within 7 days"),
        lambda now: _good(now) & Q(expires__lte=now + SOON),
    ),
    "idle": (
        gettext_lazy("Not used for 30 days"),
        lambda now: _good(now) & _unused(now - MONTH),
    ),
    "unused": (
        gettext_lazy("Not used for 90 days"),
        lambda now: _good(now) & _unused(now - LONG),
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


class KindFilter(admin.SimpleListFilter):
    """Filters connected apps, or tokens that somebody made."""

    title = gettext_lazy("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("app", _("Connected apps")), ("token", _("Access tokens"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value()
        if asked not in ("app", "token"):
            return queryset
        return queryset.filter(connection__isnull=asked == "token")


class ExactFilter(admin.SimpleListFilter):
    """Filters by a value that a cell of the list links to; offers no others."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asked = self.value()
        return [(asked, visible(asked))] if asked else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value() or ""
        # A database may refuse this character.
        return queryset.none() if "\0" in asked else queryset.filter(self.rows(asked))

    def rows(self, asked: str) -> Q:
        raise NotImplementedError


class OwnerFilter(ExactFilter):
    title = gettext_lazy("whose")
    parameter_name = "whose"

    def rows(self, asked: str) -> Q:
        return Q(**{f"user__{get_user_model().USERNAME_FIELD}": asked})


class HostFilter(ExactFilter):
    """Filters by the host of an app: of its document, else where its answers go."""

    title = gettext_lazy("host")
    parameter_name = "host"

    def rows(self, asked: str) -> Q:
        unproved = Q(connection__client_host="", connection__redirect_host=asked)
        return Q(connection__client_host=asked) | unproved


class TokenColumns:
    """What lists and forms show of a token or an app."""

    @admin.display(description=gettext_lazy("starts with"))
    def begins(self, row: AccessToken) -> str:
        begins = presentation.begins_of(row)
        if not row.is_app:
            return begins
        connection = row.connection
        host = connection.client_host or connection.redirect_host
        shown = app_presentation.host_of(connection)
        return format_html("{}<br>{}", begins, _link("host", host, shown))

    @admin.display(description=gettext_lazy("whose"))
    def whose(self, row: AccessToken) -> str:
        name = row.user.get_username()
        return _link("whose", name, visible(name))

    @admin.display(description=gettext_lazy("handle"))
    def handle(self, row: AccessToken) -> str:
        return presentation.begins_of(row)

    @admin.display(description=gettext_lazy("program"))
    def program(self, row: AccessToken) -> str:
        connection = row.connection
        host, claim = (
            app_presentation.host_of(connection),
            app_presentation.claim_of(connection),
        )
        return format_html("{}<br>{}", host, claim)

    @admin.display(description=gettext_lazy("answers go to"))
    def goes_to(self, row: AccessToken) -> str:
        return visible(row.connection.redirect_uri)

    @admin.display(description=gettext_lazy("asked to"))
    def asks(self, row: AccessToken) -> str:
        return app_presentation.may_of(row.connection.may_ask)

    @admin.display(description=gettext_lazy("until"))
    def until(self, row: AccessToken) -> str:
        return app_presentation.until_of(row.connection)

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


def _link(parameter: str, value: str, shown: str) -> str:
    """Return a link to the list of those that have this value, too."""
    if not value:
        return shown
    query = {parameter: value}
    url = reverse("admin:mcp_app_accesstoken_changelist", query=query)
    return format_html('<a href="{}">{}</a>', url, shown)
