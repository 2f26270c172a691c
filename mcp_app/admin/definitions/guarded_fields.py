"""Fields that need a permission of their own: without it they are read-only.

A request that sends such a field all the same gets 403.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from mcp_app.admin.forms.demands import FIELDS
from mcp_app.admin.page.rights import lacking, may
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.models import PublishedRow

Row = TypeVar("Row", bound=PublishedRow)


class GuardedAdmin(PublishedAdmin[Row]):
    """`GUARDED` names the fields that need a permission of their own."""

    GUARDED: Mapping[str, str] = {}

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        field = FIELDS.get(db_field.name)
        if field is not None:
            return field()
        return super().formfield_for_dbfield(db_field, request, **options)

    def guarded(self, request: HttpRequest, obj: Row | None) -> dict[str, str]:
        """Return the fields that this user may not change, with the missing right."""
        return {
            field: right
            for field, right in self.GUARDED.items()
            if not may(request, right)
        }

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return [*fields, *self.guarded(request, obj)]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method == "POST":
            row = None if object_id is None else self.get_object(request, object_id)
            self._refuse_guarded(request, row)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _refuse_guarded(self, request: HttpRequest, row: Row | None) -> None:
        """Raise 403 if a guarded field was sent, or a copy would lose its value."""
        copied = row if "_saveasnew" in request.POST else None
        for name, right in self.guarded(request, row).items():
            # A copy would lack the values that this user may not write.
            if _is_sent(request, name) or getattr(copied, name, None):
                raise PermissionDenied(lacking(right))

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse:
        row = named.get("obj")
        there = flatten_fieldsets(self.get_fieldsets(request, row))
        guarded = self.guarded(request, row)
        lacked = {name: right for name, right in guarded.items() if name in there}
        context["lacking"] = _sentences(lacked)
        return super().render_change_form(request, context, *positional, **named)


def _is_sent(request: HttpRequest, name: str) -> bool:
    """Return whether a field, or a part of a composite field, was sent."""
    sent = (*request.POST, *request.FILES)
    return any(each == name or each.startswith(f"{name}-") for each in sent)


def _sentences(guarded: Mapping[str, str]) -> list[str]:
    rights = dict.fromkeys(guarded.values())
    return [
        _("Some fields cannot be changed here. %(right)s") % {"right": lacking(right)}
        for right in rights
    ]
