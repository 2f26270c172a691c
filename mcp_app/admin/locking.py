"""Two people at one form: the second one to save is told, and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.contrib import admin
from django.db import connections, models, router
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from mcp_app.models.changes import WatchedRow
from mcp_app.wakeup.workers import hold_after_commit

AnyRow = TypeVar("AnyRow", bound=models.Model)
Row = TypeVar("Row", bound=WatchedRow)

if TYPE_CHECKING:

    class TypedAdmin(admin.ModelAdmin[AnyRow]): ...

else:
    # Django's class takes no type arguments when it runs.
    class TypedAdmin(admin.ModelAdmin, Generic[AnyRow]): ...


class SettledAdmin(TypedAdmin[AnyRow]):
    """Answers a change when every process knows of it.

    Actions bring their own transactions, if any; the other views run in one.
    """

    def save_model(
        self,
        request: HttpRequest,
        obj: AnyRow,
        form: ModelForm[AnyRow],
        change: bool,
    ) -> None:
        super().save_model(request, obj, form, change)
        self._hold()

    def delete_model(self, request: HttpRequest, obj: AnyRow) -> None:
        super().delete_model(request, obj)
        self._hold()

    def response_action(
        self,
        request: HttpRequest,
        queryset: models.QuerySet[Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse | None:
        response = super().response_action(request, queryset, *positional, **named)
        self._hold()
        return response

    def _hold(self) -> None:
        hold_after_commit(router.db_for_write(self.model))


class LockingAdmin(SettledAdmin[Row]):
    """Locks the row while a POST compares its version and saves it."""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Row | None:
        found = super().get_object(request, object_id, from_field)
        if found is None or request.method != "POST":
            return found
        rows = self.model._default_manager.all()
        if not connections[rows.db].in_atomic_block:
            return found
        return rows.select_for_update().filter(pk=found.pk).first()
