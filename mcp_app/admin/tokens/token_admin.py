"""The admin pages of access tokens: one's own, or everyone's with the permission."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, cast

from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename, get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import router
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.account import connected_apps, presentation, token_issuance
from mcp_app.account.views import forbid_caching
from mcp_app.admin.page.bulk_deletion import NoBulkDeletion
from mcp_app.admin.tokens.token_pages import (
    NOT_YOURS,
    TOKEN_MEDIA,
    TokenPages,
    may_manage_tokens,
    own_tokens_url,
)
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Connection
from mcp_app.models.tokens import ends_soon
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.site_time import time_html

# -- token lists -----------------------------------------------------------------------
# The columns and filters of the list of access tokens and connected apps.

MONTH: Final = timedelta(days=30)
LONG: Final = timedelta(days=90)
"""A token that was unused for this long may no longer be needed."""


def _good_condition(now: datetime) -> Q:
    goes_on = Q(expires=None) | Q(expires__gt=now)
    return goes_on & Q(revoked=None, user__is_active=True)


def _unused_condition(since: datetime) -> Q:
    return Q(used__lt=since) | Q(used=None, created__lt=since)


STATES: Final[dict[str, tuple[Label, Callable[[datetime], Q]]]] = {
    "good": (gettext_lazy("Good"), _good_condition),
    "soon": (
        gettext_lazy("End within 7 days"),
        lambda now: _good_condition(now) & ends_soon(now),
    ),
    "idle": (
        gettext_lazy("Not used for 30 days"),
        lambda now: _good_condition(now) & _unused_condition(now - MONTH),
    ),
    "unused": (
        gettext_lazy("Not used for 90 days"),
        lambda now: _good_condition(now) & _unused_condition(now - LONG),
    ),
    "revoked": (gettext_lazy("Revoked"), lambda now: Q(revoked__isnull=False)),
    "expired": (gettext_lazy("Expired"), lambda now: Q(revoked=None, expires__lte=now)),
    "stopped": (
        gettext_lazy("Stopped: the owner cannot log in"),
        lambda now: (
            Q(revoked=None, user__is_active=False)
            & (Q(expires=None) | Q(expires__gt=now))
        ),
    ),
}
"""By value of the filter: the label, and a function that returns the condition."""


class TokenStateFilter(admin.SimpleListFilter):
    """Filters by the current state of a token."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, str(label)) for name, (label, _rows) in STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = self.value()
        if state not in STATES:
            return queryset
        return queryset.filter(STATES[state][1](timezone.now()))


class KindFilter(admin.SimpleListFilter):
    """Filters connected apps, or tokens that somebody made."""

    title = gettext_lazy("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("app", _("Connected apps")), ("token", _("Access tokens"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        kind = self.value()
        if kind not in ("app", "token"):
            return queryset
        return queryset.filter(connection__isnull=kind == "token")


class ExactFilter(admin.SimpleListFilter):
    """Filters by a value from the link in a cell; offers no choices."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        value = self.value()
        return [(value, visible(value))] if value else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        # Some databases refuse NUL in a query.
        if "\0" in value:
            return queryset.none()
        return queryset.filter(self.value_condition(value))

    def value_condition(self, value: str) -> Q:
        raise NotImplementedError


class OwnerFilter(ExactFilter):
    title = gettext_lazy("whose")
    parameter_name = "whose"

    def value_condition(self, value: str) -> Q:
        return Q(**{f"user__{get_user_model().USERNAME_FIELD}": value})


class HostFilter(ExactFilter):
    """Filters by the host of an app: of its document, else of its redirect URI."""

    title = gettext_lazy("host")
    parameter_name = "host"

    def value_condition(self, value: str) -> Q:
        unproved = Q(connection__client_host="", connection__redirect_host=value)
        return Q(connection__client_host=value) | unproved


class TokenColumns:
    """Columns that lists and forms show of a token or an app."""

    @admin.display(description=gettext_lazy("starts with"))
    def begins(self, row: AccessToken) -> str:
        begins = presentation.begins_of(row)
        if not row.is_app:
            return begins
        connection = row.connection
        host = connection.client_host or connection.redirect_host
        host_text = presentation.program_host(connection)
        return format_html("{}<br>{}", begins, _filter_link("host", host, host_text))

    @admin.display(description=gettext_lazy("whose"))
    def whose(self, row: AccessToken) -> str:
        name = row.user.get_username()
        return _filter_link("whose", name, visible(name))

    @admin.display(description=gettext_lazy("handle"))
    def handle(self, row: AccessToken) -> str:
        return presentation.begins_of(row)

    @admin.display(description=gettext_lazy("program"))
    def program(self, row: AccessToken) -> str:
        connection = row.connection
        host = presentation.program_host(connection)
        claim = presentation.identity_claim(connection)
        return format_html("{}<br>{}", host, claim)

    @admin.display(description=gettext_lazy("answers go to"))
    def goes_to(self, row: AccessToken) -> str:
        return visible(row.connection.redirect_uri)

    @admin.display(description=gettext_lazy("asked to"))
    def asks(self, row: AccessToken) -> str:
        return presentation.permission_words(row.connection.may_ask)

    @admin.display(description=gettext_lazy("until"))
    def until(self, row: AccessToken) -> str:
        return presentation.until_words(row.connection)

    @admin.display(description=gettext_lazy("servers"))
    def where(self, row: AccessToken) -> str:
        return presentation.servers_of(row)

    @admin.display(description=gettext_lazy("may"), ordering="may")
    def may_do(self, row: AccessToken) -> str:
        return row.get_may_display()

    @admin.display(description=gettext_lazy("made"), ordering="created")
    def created_at(self, row: AccessToken) -> str:
        return time_html(row.created)

    @admin.display(description=gettext_lazy("ends"), ordering="expires")
    def ends(self, row: AccessToken) -> str:
        return presentation.end_or_reason(row)

    @admin.display(description=gettext_lazy("last used"), ordering="used")
    def last_used(self, row: AccessToken) -> str:
        return presentation.last_use_of(row)


def _filter_link(parameter: str, value: str, text: str) -> str:
    """Return a link to the list of all tokens with this value."""
    if not value:
        return text
    query = {parameter: value}
    url = reverse("admin:mcp_app_accesstoken_changelist", query=query)
    return format_html('<a href="{}">{}</a>', url, text)


# -- token admin -----------------------------------------------------------------------


def _end_chosen_rows(
    user: AbstractBaseUser, queryset: QuerySet[AccessToken]
) -> tuple[int, int]:
    """End the chosen rows; return the numbers of ended apps and tokens."""
    with own_transaction(router.db_for_write(AccessToken)):
        # Query inside the transaction: a retry must read the rows again.
        # A company may let in again an app that its program ended: so end it for good.
        by_program = Q(connection__ended=Connection.Ended.CLIENT)
        rows = list(queryset.filter(Q(revoked=None) | by_program).order_by("pk"))
        tokens = [row for row in rows if not row.is_app]
        apps = [row for row in rows if row.is_app]
        ended = connected_apps.end_connected_apps(user, apps)
        for row in tokens:
            token_issuance.end_token(user, row)
    return ended, len(tokens)


@admin.register(AccessToken)
class TokenAdmin(TokenColumns, NoBulkDeletion[AccessToken], TokenPages):
    """Tokens; users with any permission of this app can manage their own here."""

    change_list_template = "admin/mcp_app/tokens.html"
    change_form_template = "admin/mcp_app/token.html"
    list_display = ["name", "begins", "whose", "where", "may_do", "ends", "last_used"]
    list_filter = [KindFilter, TokenStateFilter, "may", OwnerFilter, HostFilter]
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = ["end_chosen", "narrow_to_reading"]
    readonly_fields = [
        "begins",
        "whose",
        "where",
        "may_do",
        "networks",
        "tags",
        "tools",
        "created_at",
        "ends",
        "last_used",
    ]
    fields = ["name", *readonly_fields]
    # These are read-only, too, but only apps have them.
    readonly_fields += ["handle", "program", "goes_to", "asks", "until"]
    app_fields = [
        "name",
        "handle",
        "program",
        "goes_to",
        "whose",
        "where",
        "may_do",
        "asks",
        "tags",
        "created_at",
        "until",
        "ends",
        "last_used",
    ]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_module_perms("mcp_app")

    def has_view_permission(
        self, request: HttpRequest, obj: AccessToken | None = None
    ) -> bool:
        is_owner = obj is None or obj.user_id == request.user.pk
        may_see = is_owner or may_manage_tokens(request)
        return self.has_module_permission(request) and may_see

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(
        self, request: HttpRequest, obj: AccessToken | None = None
    ) -> bool:
        may_change = obj is None or self.is_owner_or_superuser(request, obj)
        return self.has_module_permission(request) and may_change

    def has_delete_permission(
        self, request: HttpRequest, obj: AccessToken | None = None
    ) -> bool:
        """Return whether the row may be deleted, also if its owner is deleted."""
        opts = get_user_model()._meta
        codename = get_permission_codename("delete", opts)
        with_user = request.user.has_perm(f"{opts.app_label}.{codename}")
        return self.has_view_permission(request, obj) or with_user

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessToken]:
        rows = super().get_queryset(request)
        if not may_manage_tokens(request):
            rows = rows.filter(user=request.user.pk)
        return rows.select_related("user", "connection").prefetch_related("servers")

    def get_fields(self, request: HttpRequest, obj: AccessToken | None = None) -> Any:
        return self.app_fields if obj is not None and obj.is_app else self.fields

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        user = f"user__{get_user_model().USERNAME_FIELD}"
        hosts = ["connection__client_host", "connection__redirect_host"]
        return ["name", "prefix", user, *hosts]

    @admin.action(description=gettext_lazy("Delete or end the chosen now"))
    def end_chosen(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> None:
        user: Any = request.user
        apps, tokens = persistently(partial(_end_chosen_rows, user, queryset))
        if apps:
            message = presentation.ended_words(apps)
            self.message_user(request, message, messages.SUCCESS)
        if tokens or not apps:
            message = ngettext(
                "Deleted: %d token lets nobody in any more.",
                "Deleted: %d tokens let nobody in any more.",
                tokens,
            )
            self.message_user(request, message % tokens, messages.SUCCESS)

    @admin.action(description=gettext_lazy("Let the chosen apps only look things up"))
    def narrow_to_reading(
        self, request: HttpRequest, queryset: QuerySet[AccessToken]
    ) -> None:
        apps = queryset.filter(connection__isnull=False, revoked=None)
        rows = list(apps.filter(may=AccessToken.May.CHANGE).order_by("pk"))
        with own_transaction(router.db_for_write(AccessToken)):
            by = cast("AbstractBaseUser", request.user)
            count = sum(connected_apps.narrow_to_reading(by, row) for row in rows)
        message = ngettext(
            "%d connected app may only look things up from now on.",
            "%d connected apps may only look things up from now on.",
            count,
        )
        self.message_user(request, message % count, messages.SUCCESS)

    def save_model(
        self,
        request: HttpRequest,
        obj: AccessToken,
        form: ModelForm[AccessToken],
        change: bool,
    ) -> None:
        """Store the name alone: somebody may revoke the token in this moment."""
        token_issuance.rename_token(request.user, obj)  # type: ignore[arg-type]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Do nothing: `save_model` has already logged the new name."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {"own_url": own_tokens_url(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse:
        row: AccessToken = named["obj"]
        context |= {
            "state": presentation.token_state(row),
            "not_yours": "" if self.is_owner_or_superuser(request, row) else NOT_YOURS,
            "show_delete": False,
            "show_save_and_add_another": False,
            "show_save_and_continue": False,
            "media": context["media"] + TOKEN_MEDIA,
        }
        response = super().render_change_form(request, context, *positional, **named)
        forbid_caching(response)
        return response
