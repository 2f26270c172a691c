"""Two people at one form: the second one to save is told, and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from django.contrib import admin
from django.db import connections, models
from django.http import HttpRequest

from mcp_app.models.changes import WatchedRow

AnyRow = TypeVar("AnyRow", bound=models.Model)
Row = TypeVar("Row", bound=WatchedRow)

if TYPE_CHECKING:

    class TypedAdmin(admin.ModelAdmin[AnyRow]): ...

else:
    # Django's class takes no type arguments when it runs.
    class TypedAdmin(admin.ModelAdmin, Generic[AnyRow]): ...


class LockingAdmin(TypedAdmin[Row]):
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
