"""The pages on which users manage their own access tokens and connected apps.

`connected_app_page` is the page of one app.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models import Case, Count, F, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_deny
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from mcp_app.account import connected_apps, presentation, token_issuance
from mcp_app.account.call_decisions import calls_to_confirm
from mcp_app.account.connected_apps import ChangedMeanwhile
from mcp_app.account.event_subscriptions import end_subscriptions, lines_of
from mcp_app.account.forms import (
    AppForm,
    NameForm,
    NewTokenForm,
    OnceForm,
    ReplaceForm,
    visible_tag_counts,
)
from mcp_app.account.presentation import NO_CALLS, end_words
from mcp_app.account.token_issuance import NO_REPLACEMENT, AlreadyShown, Irreplaceable
from mcp_app.auth.rights import AppEnded, Choice
from mcp_app.models import AccessToken, EventSubscription, Server
from mcp_app.models.tokens import Secret
from mcp_app.process.visible import visible_to
from mcp_app.site_time import time_html

PAGE: Final = 50
"""Tokens on one page."""

View = Callable[..., HttpResponse]


def own_page(view: View) -> View:
    """Require an active user, and forbid caching and framing the response."""

    @wraps(view)
    def serve_active_user(
        request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if not request.user.is_active:
            # Some backends log inactive users in, but their tokens would not work.
            raise PermissionDenied
        response = view(request, *args, **kwargs)
        forbid_caching(response)
        return response

    return login_required(csrf_protect(xframe_options_deny(serve_active_user)))


def forbid_caching(response: HttpResponse) -> None:
    """Forbid caches to store a response, and other sites to learn its URL."""
    patch_cache_control(response, no_store=True, private=True)
    response.setdefault("Referrer-Policy", "same-origin")


def own_tokens(request: HttpRequest) -> QuerySet[AccessToken]:
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
def token_list(request: HttpRequest) -> HttpResponse:
    """List the user's connected apps, and the tokens."""
    everything = AccessToken.objects.filter(user=request.user.pk)
    # One statement counts apps and tokens.
    counts = everything.aggregate(all=Count("pk"), apps=Count("connection"))
    apps = _list_part(request, "apps", counts["apps"])
    page = _list_part(request, "page", counts["all"] - counts["apps"])
    models.prefetch_related_objects([*apps.object_list, *page.object_list], "servers")
    user: Any = request.user
    calls = presentation.recent_calls_of(user) if apps.object_list else NO_CALLS
    app_lines = [
        {**connected_app_line(row), "calls": calls.count_words(row)}
        for row in apps.object_list
    ]
    lines = [token_line(row) for row in page.object_list]
    shown = {"apps": apps, "app_lines": app_lines, "page": page, "lines": lines}
    return _render_page(request, "tokens", **shown, waiting=len(calls_to_confirm(user)))


def _list_part(request: HttpRequest, name: str, count: int) -> Page[AccessToken]:
    rows = own_tokens(request).filter(connection__isnull=name != "apps")
    paginator = Paginator(rows, PAGE)
    # With this, the paginator makes no query of its own to count.
    paginator.count = count
    page = paginator.get_page(request.GET.get(name))
    page.object_list = list(page.object_list)
    return page


@own_page
@sensitive_variables()
@sensitive_post_parameters("public_key")
def add_token(request: HttpRequest) -> HttpResponse:
    """Ask for the details of a new token, make it, and show it once."""
    data = request.POST if request.method == "POST" else None
    form = NewTokenForm(data, user=request.user, servers=presentation.open_servers())  # type: ignore[arg-type]
    if not form.is_valid():
        return _render_page(request, "add", form=form)
    issue = partial(token_issuance.issue_token, **form.token_arguments())
    return show_once(request, form, issue, partial(_render_page, request))


@own_page
@sensitive_variables()
@sensitive_post_parameters("code")
def take_token(request: HttpRequest) -> HttpResponse:
    """Ask for a colleague's link; on POST make its token, and show it once.

    The code of the link follows a `#`.  Browsers do not send it, so no log has it.
    """
    problem = ""
    if request.method == "POST":
        code = request.POST.get("code", "").rpartition("#")[2]
        try:
            row, token = token_issuance.take_token(request.user, code)  # type: ignore[arg-type]
            shown = presentation.reveal_token(request, row, token)
            return _render_page(request, "shown", shown=shown, row=row)
        except ValidationError as refused:
            problem = str(refused.message)
    return _render_page(request, "take", problem=problem)


@own_page
def token_page(request: HttpRequest, key: int) -> HttpResponse:
    """Show everything about a token but its secret; rename the token on POST."""
    row = get_object_or_404(own_tokens(request), pk=key)
    if row.is_app:
        return redirect("mcp_account:app", key)
    form = NameForm(request.POST if request.method == "POST" else None, instance=row)
    if request.method == "POST" and form.is_valid():
        token_issuance.rename_token(row.user, row)
        messages.success(request, _("The name was changed."), fail_silently=True)
        return redirect("mcp_account:token", key)
    if form.errors:
        # The form has put the invalid name into the row: show the stored one.
        row = get_object_or_404(own_tokens(request), pk=key)
    return _render_page(request, "token", form=form, row=row, line=token_line(row))


@own_page
@sensitive_variables()
def replace_token(request: HttpRequest, key: int) -> HttpResponse:
    """Ask when the old token ends, make the new one, and show it once."""
    row = get_object_or_404(own_tokens(request), pk=key)
    url = reverse(f"mcp_account:{'app' if row.is_app else 'token'}", args=[key])
    return replace_once(request, row, url, partial(_render_page, request))


@own_page
@require_POST
def delete_token(request: HttpRequest, key: int) -> HttpResponse:
    """Revoke a token or end an app; after the answer, no worker accepts it."""
    row = get_object_or_404(own_tokens(request), pk=key)
    token_issuance.end_token(row.user, row)
    messages.success(request, end_words(row), fail_silently=True)
    return redirect("mcp_account:tokens")


@own_page
@require_POST
def forget_token(request: HttpRequest, key: int) -> HttpResponse:
    """Delete the row of a token that has ended."""
    row = get_object_or_404(own_tokens(request), pk=key)
    if row.has_ended(timezone.now()):
        token_issuance.forget_token(row.user, row)
        message = _("“%(token)s” is not in the list any more.") % {"token": row}
        messages.success(request, message, fail_silently=True)
    return redirect("mcp_account:tokens")


@sensitive_variables()
def show_once(
    request: HttpRequest,
    form: OnceForm,
    issue: Callable[..., tuple[AccessToken, Secret]],
    render_page: View,
    old: AccessToken | None = None,
) -> HttpResponse:
    """Make a token by a valid form, and show it; if the form made one before, say so.

    `render_page` takes the name of a page and its context; `old` is the replaced token.
    """
    by: Any = request.user
    try:
        row, token = issue(by, idempotency_key=form.idempotency_key(by))
    except AlreadyShown as already:
        title, sentence = _("Access token"), str(already)
        return render_page("already", title=title, row=already.row, said=sentence)
    if row.maker_id is not None:
        page = request.build_absolute_uri(reverse("mcp_account:take"))
        link, title = Secret(f"{page}#{token}"), _("A link for a colleague")
        return render_page("link", title=title, row=row, link=link)
    shown = presentation.reveal_token(request, row, token)
    line, title = old and token_line(old), _("Your token")
    return render_page("shown", title=title, row=row, shown=shown, old=line)


def replace_once(
    request: HttpRequest, row: AccessToken, url: str, render_page: View
) -> HttpResponse:
    """Ask when a token ends, make the next one, and show it; `url` shows the token."""
    problem = str(NO_REPLACEMENT)
    if not row.is_app:
        form = ReplaceForm(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            title = _("Replace %(token)s") % {"token": row}
            line = token_line(row)
            return render_page("replace", title=title, form=form, row=row, line=line)
        replace = partial(
            token_issuance.replace_token, row=row, overlap=form.overlap_time()
        )
        try:
            return show_once(request, form, replace, render_page, row)
        except Irreplaceable as reason:
            problem = str(reason)
    messages.error(request, problem, fail_silently=True)
    return redirect(url)


def token_line(row: AccessToken, servers: str = "") -> dict[str, object]:
    """Return what a page shows of a token or an app; `servers` names its servers."""
    return {
        "row": row,
        "name": str(row),
        "state": presentation.token_state(row),
        "servers": servers or presentation.servers_of(row),
        "ends": presentation.end_or_reason(row),
        "used": presentation.last_use_of(row),
        "created": time_html(row.created),
    }


def connected_app_line(row: AccessToken, server: str = "") -> dict[str, Any]:
    """Return what a page shows of a connected app."""
    connection = row.connection
    return {
        **token_line(row, server),
        "host": presentation.program_host(connection),
        "may": presentation.permission_words(row.may),
        "until": presentation.until_words(connection),
    }


def _render_page(request: HttpRequest, name: str, **context: object) -> HttpResponse:
    # The template has its own title; a site's frame may show a variable of this name.
    context.pop("title", None)
    return render(request, f"mcp_app/account/{name}.html", context)


# -- app views -------------------------------------------------------------------------
# The page of one connected app of the user: what it may do, and how to end it.


@own_page
def connected_app_page(request: HttpRequest, key: int) -> HttpResponse:
    """Show a connected app; on POST change its name and its rights."""
    rows = own_tokens(request).filter(connection__isnull=False)
    # An app has one server, or none if the server was deleted.
    with_server = rows.annotate(slug=F("servers__slug"), title=F("servers__title"))
    row: Any = get_object_or_404(with_server, pk=key)
    server = Server(slug=row.slug, title=row.title) if row.slug else ""
    line = connected_app_line(row, str(server))
    if line["state"].has_ended:
        if request.method == "POST":
            return _redirect_with_error(request, row, _has_ended())
        return _render_app_page(request, row, line, form=None)
    # What the owner sees at the server; None if that is nothing at all.
    visible = visible_to(row.user, row.slug) if row.slug else None
    form = AppForm(
        request.POST if request.method == "POST" else None,
        connection=row.connection,
        tags=visible_tag_counts(visible) if visible else Counter(),
    )
    if visible is not None:
        form.tell_what_is_missing(visible)
    if form.is_valid() and (answer := _save_choice(request, row, form)):
        return answer
    return _render_app_page(request, row, line, form=form, sees_nothing=visible is None)


@own_page
@require_POST
def end_watch(request: HttpRequest, key: int, pk: int) -> HttpResponse:
    """End an event subscription of an app of the user."""
    app = get_object_or_404(own_tokens(request), pk=key)
    rows = EventSubscription.objects.open().filter(principal=app.principal_key)
    row = get_object_or_404(rows, pk=pk)
    end_subscriptions(request.user, [row])
    message = _("Stopped: this app is not told of “%(event)s” any more.")
    messages.success(request, message % {"event": row.event_type}, fail_silently=True)
    return redirect("mcp_account:app", key)


@own_page
@require_POST
def end_all_apps(request: HttpRequest) -> HttpResponse:
    """End all connected apps of the user."""
    user: Any = request.user
    count = connected_apps.end_connected_apps(user, connected_apps.open_apps(user))
    messages.success(request, presentation.ended_words(count), fail_silently=True)
    return redirect("mcp_account:tokens")


def _save_choice(
    request: HttpRequest, row: AccessToken, form: AppForm
) -> HttpResponse | None:
    """Store the choice and redirect; None if the form must show an error."""
    if not form.is_current():
        return _redirect_with_error(request, row, _change_conflict())
    before = Choice.of_connection(row.connection)
    try:
        connected_apps.change_app(row.user, row, before, form.chosen_rights())
    except AppEnded:
        return _redirect_with_error(request, row, _has_ended())
    except ChangedMeanwhile:
        return _redirect_with_error(request, row, _change_conflict())
    except ValidationError as error:
        form.add_error("name", error.messages)
        return None
    messages.success(request, _("The changes were saved."), fail_silently=True)
    return redirect("mcp_account:app", row.pk)


def _has_ended() -> str:
    return _("This connected app has ended. Sign in again in the program.")


def _change_conflict() -> str:
    return _(
        "Somebody has changed this app since you opened the page. Nothing was saved."
        " Look at what it may now."
    )


def _redirect_with_error(
    request: HttpRequest, row: AccessToken, message: str
) -> HttpResponse:
    messages.error(request, message, fail_silently=True)
    return redirect("mcp_account:app", row.pk)


def _render_app_page(
    request: HttpRequest, row: AccessToken, line: dict[str, Any], **context: object
) -> HttpResponse:
    connection = row.connection
    page_context = {
        **context,
        "row": row,
        "line": line,
        "claim": presentation.identity_claim(connection),
        "asked": presentation.permission_words(connection.may_ask),
        "watches": lines_of(row.principal_key),
    }
    return render(request, "mcp_app/account/app.html", page_context)
