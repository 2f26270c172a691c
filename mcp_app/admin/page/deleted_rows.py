"""Deleted rows: who deleted them, and a redirect with a message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.site_time import time_text

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Deleted(Http404):
    """A row was deleted; the message says by whom."""


def raise_if_deleted(request: HttpRequest, model: type[Model], key: object) -> None:
    """Raise `Deleted` for a row that was not found, if it existed before.

    A POST was sent from the page of the row, so the row existed, even if the admin log
    has no entry of its deletion.
    """
    entry = _deletion_entries(model, [key]).first()
    message = deletion_sentence(model, entry)
    if request.method == "POST":
        raise Deleted(_("%(deleted)s Nothing was saved.") % {"deleted": message})
    if entry is not None:
        raise Deleted(message)


def deletion_sentence(model: type[Model], entry: LogEntry | None) -> str:
    """Say what happened to a row; `entry` is None if no deletion was logged."""
    model_name = model._meta.verbose_name
    if entry is None:
        return _("This %(what)s was deleted in the meantime.") % {"what": model_name}
    return _("The %(what)s “%(row)s” was deleted by %(by)s (%(at)s).") % {
        "what": model_name,
        "row": visible(entry.object_repr),
        "by": entry.user.get_username(),
        "at": time_text(entry.action_time),
    }


def sentences(model: type[Model], keys: Iterable[object]) -> Iterator[str]:
    """Yield a sentence for each of these rows that no longer exists."""
    keys_by_text = {str(key): key for key in keys}
    rows = model._default_manager.filter(pk__in=keys_by_text.values())
    absent = keys_by_text.keys() - set(map(str, rows.values_list("pk", flat=True)))
    latest_first = _deletion_entries(model, absent)
    # Reversed, so that the latest entry of each row replaces the earlier ones.
    entries = {entry.object_id: entry for entry in reversed(latest_first)}
    for key in sorted(absent):
        yield deletion_sentence(model, entries.get(key))


def redirect_missing_row(view: View) -> View:
    """Make a view redirect to the list, with a message, if its row was deleted."""

    @wraps(view)
    def redirecting_view(
        admin: ModelAdmin[Any], request: HttpRequest, *positional: Any, **keywords: Any
    ) -> HttpResponseBase:
        try:
            return view(admin, request, *positional, **keywords)
        except Deleted as deleted:
            return to_the_list(admin, request, str(deleted))

    return cast("View", redirecting_view)


def to_the_list(
    admin: ModelAdmin[Any], request: HttpRequest, message: str
) -> HttpResponse:
    """Redirect to the list of rows, with a message."""
    if not admin.has_view_or_change_permission(request):
        raise PermissionDenied
    admin.message_user(request, message, messages.ERROR)
    name = f"admin:{admin.opts.app_label}_{admin.opts.model_name}_changelist"
    return HttpResponseRedirect(reverse(name))


def _deletion_entries(model: type[Model], keys: Iterable[object]) -> Any:
    """Return the log entries of deletions of these rows, the latest first."""
    kind = ContentType.objects.get_for_model(model)
    texts = list(map(str, keys))
    entries = LogEntry.objects.filter(
        content_type=kind, object_id__in=texts, action_flag=DELETION
    )
    return entries.select_related("user").order_by("-action_time", "-pk")
