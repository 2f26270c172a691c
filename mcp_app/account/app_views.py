"""The page of one connected app of the user: what it may, and its end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from mcp_app.account import app_presentation, connected_apps
from mcp_app.account.app_form import AppForm
from mcp_app.account.connected_apps import ChangedMeanwhile
from mcp_app.account.rights_choice import tags_of
from mcp_app.account.views import app_line, own, own_page
from mcp_app.auth.app_changes import AppEnded, Choice
from mcp_app.models import AccessToken, Server
from mcp_app.process.visible import visible_to


@own_page
def app(request: HttpRequest, key: int) -> HttpResponse:
    """Show a connected app; change its name and what it may on POST."""
    rows = own(request).filter(connection__isnull=False)
    # An app has one server, or none once that was deleted.
    named = rows.annotate(slug=F("servers__slug"), title=F("servers__title"))
    row: Any = get_object_or_404(named, pk=key)
    server = Server(slug=row.slug, title=row.title) if row.slug else ""
    line = app_line(row, str(server))
    if line["state"].has_ended:
        if request.method == "POST":
            return _again(request, row, _has_ended())
        return _page(request, row, line, form=None)
    # What its owner sees there, None for nothing at all.
    visible = visible_to(row.user, row.slug) if row.slug else None
    form = AppForm(
        request.POST if request.method == "POST" else None,
        connection=row.connection,
        tags=tags_of(visible) if visible else Counter(),
    )
    if visible is not None:
        form.tell_what_is_missing(visible)
    if form.is_valid() and (answer := _saved(request, row, form)):
        return answer
    return _page(request, row, line, form=form, sees_nothing=visible is None)


@own_page
@require_POST
def end_all(request: HttpRequest) -> HttpResponse:
    """End all connected apps of the user."""
    user: Any = request.user
    count = connected_apps.end_all(user, connected_apps.open_apps(user))
    said = app_presentation.ended_words(count)
    messages.success(request, said, fail_silently=True)
    return redirect("mcp_account:tokens")


def _saved(
    request: HttpRequest, row: AccessToken, form: AppForm
) -> HttpResponse | None:
    """Store what was chosen; return None, with the reason in the form, if it is not."""
    if not form.is_current():
        return _again(request, row, _changed_meanwhile())
    before = Choice.of(row.connection)
    try:
        connected_apps.change(row.user, row, before, form.choice())
    except AppEnded:
        return _again(request, row, _has_ended())
    except ChangedMeanwhile:
        return _again(request, row, _changed_meanwhile())
    except ValidationError as error:
        form.add_error("name", error.messages)
        return None
    messages.success(request, _("The changes were saved."), fail_silently=True)
    return redirect("mcp_account:app", row.pk)


def _has_ended() -> str:
    return _("This connected app has ended. Sign in again in the program.")


def _changed_meanwhile() -> str:
    return _(
        "Somebody has changed this app since you opened the page. Nothing was saved."
        " Look at what it may now."
    )


def _again(request: HttpRequest, row: AccessToken, said: str) -> HttpResponse:
    messages.error(request, said, fail_silently=True)
    return redirect("mcp_account:app", row.pk)


def _page(
    request: HttpRequest, row: AccessToken, line: dict[str, Any], **context: object
) -> HttpResponse:
    connection = row.connection
    both = {
        **context,
        "row": row,
        "line": line,
        "claim": app_presentation.claim_of(connection),
        "asked": app_presentation.may_of(connection.may_ask),
    }
    return render(request, "mcp_app/account/app.html", both)
