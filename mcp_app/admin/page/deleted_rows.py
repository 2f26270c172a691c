"""Deleted rows: who deleted them, and a redirect with a message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.contrib import messages
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.site_time import local_time

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Deleted(Http404):
    """A row was deleted; the message says by whom."""


def demand_row(request: HttpRequest, model: type[Model], key: object) -> None:
    """Raise `Deleted` for a row that was not found, if it existed before.

    A POST proves that it did, even if the admin log has no entry of its deletion.
    """
    entry = _entries(model, [key]).first()
    said = sentence(model, entry)
    if request.method == "POST":
        raise Deleted(_("%(deleted)s Nothing was saved.") % {"deleted": said})
    if entry is not None:
        raise Deleted(said)


def sentence(model: type[Model], entry: LogEntry | None) -> str:
    """Say what happened to a row; `entry` is None if no deletion was logged."""
    what = model._meta.verbose_name
    if entry is None:
        return _("This %(what)s was deleted in the meantime.") % {"what": what}
    return _("The %(what)s “%(row)s” was deleted by %(by)s on %(at)s.") % {
        "what": what,
        "row": visible(entry.object_repr),
        "by": entry.user.get_username(),
        "at": date_format(local_time(entry.action_time), "SHORT_DATETIME_FORMAT"),
    }


def sentences(model: type[Model], keys: Iterable[object]) -> Iterator[str]:
    """Yield such a sentence for each of these rows that no longer exists."""
    asked = {str(key): key for key in keys}
    there = model._default_manager.filter(pk__in=asked.values())
    gone = asked.keys() - {str(key) for key in there.values_list("pk", flat=True)}
    entries = {each.object_id: each for each in reversed(_entries(model, gone))}
    for key in sorted(gone):
        yield sentence(model, entries.get(key))


def redirect_missing_row(view: View) -> View:
    """Make a view redirect to the list, with a message, if its row was deleted."""

    @wraps(view)
    def told(
        admin: ModelAdmin[Any], request: HttpRequest, *positional: Any, **named: Any
    ) -> HttpResponseBase:
        try:
            return view(admin, request, *positional, **named)
        except Deleted as deleted:
            return to_the_list(admin, request, str(deleted))

    return cast("View", told)


def to_the_list(
    admin: ModelAdmin[Any], request: HttpRequest, said: str
) -> HttpResponse:
    """Redirect to the list of rows, with a message."""
    if not admin.has_view_or_change_permission(request):
        raise PermissionDenied
    admin.message_user(request, said, messages.ERROR)
    name = f"admin:{admin.opts.app_label}_{admin.opts.model_name}_changelist"
    return HttpResponseRedirect(reverse(name))


def key_of(model: type[Model], text: str) -> object:
    """Return the primary key that a text stands for; None if it is not valid."""
    try:
        key: object = model._meta.pk.clean(text, None)
    except ValidationError:
        # The key's validators also check its range in the database.
        return None
    return key


def _entries(model: type[Model], keys: Iterable[object]) -> Any:
    """Return the log entries of deletions of these rows, the latest first."""
    kind = ContentType.objects.get_for_model(model)
    return (
        LogEntry.objects.filter(
            content_type=kind, object_id__in=map(str, keys), action_flag=DELETION
        )
        .select_related("user")
        .order_by("-action_time", "-pk")
    )
