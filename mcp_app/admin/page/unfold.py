"""The base of all admin pages: django-unfold's if the site uses it, else Django's.

On a site with unfold, pages of Django's base class have fields without borders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from django.apps import apps
from django.db.models import Model
from django.http import HttpRequest

HAS_UNFOLD: Final = apps.is_installed("unfold")
"""Whether the site uses django-unfold."""

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as ModelAdmin  # noqa: PLC0414
elif HAS_UNFOLD:
    from unfold.admin import ModelAdmin
else:
    from django.contrib.admin import ModelAdmin

FORM_STYLES: Final = () if HAS_UNFOLD else ("admin/css/forms.css",)
"""The style sheets of forms on pages other than Django's page for one row."""
OBJECT_TOOL: Final = "div" if HAS_UNFOLD else "li"
"""The element around each object tool: in Django, the tools are a list."""

AnyRow = TypeVar("AnyRow", bound=Model)
if TYPE_CHECKING:

    class TypedAdmin(ModelAdmin[AnyRow]): ...

else:
    # Django's class takes no type arguments at run time.
    class TypedAdmin(ModelAdmin, Generic[AnyRow]): ...


class FixedRows(TypedAdmin[AnyRow]):
    """Rows that nobody can add or change here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: AnyRow | None = None
    ) -> bool:
        return False
