"""The pages on which users manage their own access tokens, and nobody else's.

The list has their connected apps, too; `app_views` has the page of one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import (
    Case,
    Count,
    Q,
    QuerySet,
    Value,
    When,
    prefetch_related_objects,
)
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_deny
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from mcp_app.account import app_presentation, presentation, token_issuance
from mcp_app.account.app_presentation import NO_CALLS
from mcp_app.account.forms import NameForm, NewTokenForm, ReplaceForm
from mcp_app.account.presentation import end_words
from mcp_app.account.token_issuance import NO_REPLACEMENT, AlreadyShown, Irreplaceable
from mcp_app.models import AccessToken
from mcp_app.models.tokens import Secret

PAGE: Final = 50
"""Tokens on one page."""

View = Callable[..., HttpResponse]


def own_page(view: View) -> View:
    """Require an active user, and forbid caching and framing the response."""

    @wraps(view)
    def answered(request: HttpRequest, *given: Any, **named: Any) -> HttpResponse:
        if not request.user.is_active:
            # Some backends log inactive users in, but their tokens would not work.
            raise PermissionDenied
        response = view(request, *given, **named)
        unseen(response)
        return response

    return login_required(csrf_protect(xframe_options_deny(answered)))


def unseen(response: HttpResponse) -> None:
    """Forbid caches to store a response, and other sites to learn its URL."""
    patch_cache_control(response, no_store=True, private=True)
    response.setdefault("Referrer-Policy", "same-origin")


def own(request: HttpRequest) -> QuerySet[AccessToken]:
    """Return the user's tokens and apps, ended ones last."""
    now = timezone.now()
    ended = Q(revoked__isnull=False) | Q(expires__lte=now)
    rows = AccessToken.objects.filter(user=request.user.pk)
    rows = rows.select_related("user", "connection")
    return rows.order_by(
        Case(When(ended, then=Value(1)), default=Value(0)), "-created", "-pk"
    )


@own_page
@require_safe
def tokens(request: HttpRequest) -> HttpResponse:
    """List the user's connected apps, and the tokens."""
    everything = AccessToken.objects.filter(user=request.user.pk)
    # One statement counts both.
    counts = everything.aggregate(all=Count("pk"), apps=Count("connection"))
    apps = _part(request, "apps", counts["apps"])
    page = _part(request, "page", counts["all"] - counts["apps"])
    prefetch_related_objects([*apps.object_list, *page.object_list], "servers")
    user: Any = request.user
    calls = app_presentation.calls_of(user) if apps.object_list else NO_CALLS
    return _page(
        request,
        "tokens",
        apps=apps,
        app_lines=[
            {**app_line(row), "calls": calls.words(row)} for row in apps.object_list
        ],
        page=page,
        lines=[_line(row) for row in page.object_list],
    )


def _part(request: HttpRequest, name: str, count: int) -> Page[AccessToken]:
    """Return a page of one part of the list, of which there are so many."""
    rows = own(request).filter(connection__isnull=name != "apps")
    paginator = Paginator(rows, PAGE)
    paginator.count = count
    page = paginator.get_page(request.GET.get(name))
    page.object_list = list(page.object_list)
    return page


@own_page
@sensitive_variables()
def add(request: HttpRequest) -> HttpResponse:
    """Ask for the details of a new token, make it, and show it once."""
    sent = request.POST if request.method == "POST" else None
    form = NewTokenForm(sent, user=request.user, servers=presentation.open_servers())  # type: ignore[arg-type]
    if not form.is_valid():
        return _page(request, "add", form=form)
    try:
        row, token = token_issuance.make(
            request.user,  # type: ignore[arg-type]
            made_with=form.made_with(request.user),  # type: ignore[arg-type]
            **form.columns(),
        )
    except AlreadyShown as already:
        return _already(request, already)
    return _revealed(request, row, token)


@own_page
def token(request: HttpRequest, key: int) -> HttpResponse:
    """Show everything but the token itself; rename it on POST."""
    row = get_object_or_404(own(request), pk=key)
    if row.is_app:
        return redirect("mcp_account:app", key)
    form = NameForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        token_issuance.rename(row.user, row)
        messages.success(request, _("The name was changed."), fail_silently=True)
        return redirect("mcp_account:token", key)
    if form.errors:
        # The form has put the invalid name into the row: show the stored one.
        row = get_object_or_404(own(request), pk=key)
    return _page(request, "token", form=form, row=row, line=_line(row))


@own_page
@sensitive_variables()
def replace(request: HttpRequest, key: int) -> HttpResponse:
    """Ask when the old token ends, make the new one, and show it once."""
    row = get_object_or_404(own(request), pk=key)
    if row.is_app:
        messages.error(request, str(NO_REPLACEMENT), fail_silently=True)
        return redirect("mcp_account:app", key)
    form = ReplaceForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return _page(request, "replace", form=form, row=row, line=_line(row))
    try:
        new, token = token_issuance.replace(
            row.user, row, form.overlap_time(), made_with=form.made_with(row.user)
        )
    except AlreadyShown as already:
        return _already(request, already)
    except Irreplaceable as reason:
        messages.error(request, str(reason), fail_silently=True)
        return redirect("mcp_account:token", key)
    return _revealed(request, new, token, old=row)


@own_page
@require_POST
def delete(request: HttpRequest, key: int) -> HttpResponse:
    """Revoke a token or end an app; no worker accepts it once this has answered."""
    row = get_object_or_404(own(request), pk=key)
    token_issuance.end(row.user, row)
    said = end_words(row)
    messages.success(request, said, fail_silently=True)
    return redirect("mcp_account:tokens")


@own_page
@require_POST
def forget(request: HttpRequest, key: int) -> HttpResponse:
    """Delete the row of a token that has ended."""
    row = get_object_or_404(own(request), pk=key)
    if row.has_ended(timezone.now()):
        token_issuance.forget(row.user, row)
        said = _("“%(token)s” is not in the list any more.") % {"token": row}
        messages.success(request, said, fail_silently=True)
    return redirect("mcp_account:tokens")


def _line(row: AccessToken, servers: str = "") -> dict[str, object]:
    """Return what a page shows of a token."""
    return {
        "row": row,
        "name": str(row),
        "state": presentation.state_of(row),
        "servers": servers or presentation.servers_of(row),
        "ends": presentation.ends_of(row),
        "used": presentation.last_use_of(row),
        "created": presentation.when(row.created),
    }


def app_line(row: AccessToken, server: str = "") -> dict[str, Any]:
    """Return what a page shows of a connected app."""
    connection = row.connection
    return {
        **_line(row, server),
        "host": app_presentation.host_of(connection),
        "may": app_presentation.may_of(row.may),
        "until": app_presentation.until_of(connection),
    }


def _revealed(
    request: HttpRequest,
    row: AccessToken,
    token: Secret,
    old: AccessToken | None = None,
) -> HttpResponse:
    both = presentation.reveal(request, row, token)
    return _page(request, "shown", shown=both, row=row, old=old and _line(old))


def _already(request: HttpRequest, already: AlreadyShown) -> HttpResponse:
    said = str(already)
    return _page(request, "already", said=said, row=already.row)


def _page(request: HttpRequest, name: str, **context: object) -> HttpResponse:
    return render(request, f"mcp_app/account/{name}.html", context)
