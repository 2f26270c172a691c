"""Concurrent edits: the second user to save gets a message and loses nothing."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeAlias, TypeVar

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest
from django.db import connections, models, router
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from mcp_app.admin.page import deleted_rows
from mcp_app.admin.page.keys import primary_key_of
from mcp_app.admin.page.unfold import OBJECT_TOOL, AnyRow, TypedAdmin
from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models.changes import WatchedRow

Row = TypeVar("Row", bound=WatchedRow)
PageViews: TypeAlias = "dict[str, tuple[str, Callable[..., HttpResponse]]]"
"""By route: the last part of the URL's name, and the view."""

MAX_DELETION_MESSAGES: Final = 10
"""How many deleted rows a response names, each in a message."""


def _utf8_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer 400 to a form in another encoding.

    Some encodings can express lone surrogates, which no page or database can hold.
    """

    @wraps(view)
    def checking_view(
        request: HttpRequest, *positional: Any, **keywords: Any
    ) -> HttpResponse:
        encoding = request.encoding
        if encoding and codecs.lookup(encoding).name != "utf-8":
            raise BadRequest(f"The form must be in UTF-8, not in {encoding}.")
        return view(request, *positional, **keywords)

    return checking_view


class SettledAdmin(TypedAdmin[AnyRow]):
    """Answers a change only after every worker knows of it.

    An action opens its own transaction if it needs one; other views run in one.
    """

    object_tool = OBJECT_TOOL

    @property
    def urls(self) -> list[URLPattern]:
        """All views of the model, which accept only UTF-8."""
        patterns: list[URLPattern] = self.get_urls()
        for pattern in patterns:
            pattern.callback = _utf8_only(pattern.callback)
        return patterns

    def page_views(self) -> PageViews:
        """Return the pages that Django's admin does not have."""
        return {}

    def get_urls(self) -> list[URLPattern]:
        model, wrap = f"mcp_app_{self.opts.model_name}", self.admin_site.admin_view
        pages = [
            path(route, wrap(view), name=f"{model}_{name}")
            for route, (name, view) in self.page_views().items()
        ]
        return [*pages, *super().get_urls()]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Return whether the query string may use this lookup.

        On the model's own columns, only the list's filters are allowed: other lookups
        reach the database unchecked, where a bad regex or a NUL causes a server error.
        """
        name, _separator, how = lookup.partition("__")
        if name not in {field.name for field in self.opts.get_fields()}:
            return super().lookup_allowed(lookup, value, request)
        if name not in self.list_filter or how not in ("", "exact"):
            return False
        choices = dict(self.opts.get_field(name).flatchoices)  # type: ignore[union-attr]
        return value in choices

    def save_model(
        self, request: HttpRequest, obj: AnyRow, form: ModelForm[AnyRow], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        self._hold_response()

    def delete_model(self, request: HttpRequest, obj: AnyRow) -> None:
        super().delete_model(request, obj)
        self._hold_response()

    def response_action(
        self,
        request: HttpRequest,
        queryset: models.QuerySet[Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse | None:
        if not self._are_there(request):
            return None
        response = super().response_action(request, queryset, *positional, **named)
        self._hold_response()
        return response

    def _are_there(self, request: HttpRequest) -> bool:
        """Return whether a chosen row still exists; add messages about deleted ones."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        # All rows of the list are chosen, also those on its other pages.
        if request.POST.get("select_across") == "1":
            return True
        keys = [primary_key_of(self.model, text) for text in chosen]
        if None in keys:
            message = _("Your choice is not in this list. Choose again.")
            self.message_user(request, message, messages.ERROR)
            return False
        sentences = list(deleted_rows.sentences(self.model, keys))
        for sentence in sentences[:MAX_DELETION_MESSAGES]:
            self.message_user(request, sentence, messages.ERROR)
        return len(set(keys)) > len(sentences) or not keys

    def _hold_response(self) -> None:
        """Send the response only after every worker knows of the committed change."""
        hold_after_commit(router.db_for_write(self.model))


class LockingAdmin(SettledAdmin[Row]):
    """Locks the row while a POST compares its version and saves it."""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Row | None:
        # An empty `from_field` means the primary key.
        row = super().get_object(request, object_id, from_field or None)
        if row is None or request.method != "POST":
            return row
        rows = self.model._default_manager.all()
        # Outside a transaction, a row cannot be locked.
        if not connections[rows.db].in_atomic_block:
            return row
        return rows.select_for_update().filter(pk=row.pk).first()
