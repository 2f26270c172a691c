"""The base of all admin pages: django-unfold's if the site uses it, else Django's.

Without its own base class, unfold's pages have fields without borders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps

HAS_UNFOLD: Final = apps.is_installed("unfold")
"""Whether the site uses django-unfold."""

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
elif HAS_UNFOLD:
    from unfold.admin import ModelAdmin
else:
    from django.contrib.admin import ModelAdmin

FORM_STYLES: Final = () if HAS_UNFOLD else ("admin/css/forms.css",)
"""The style sheets of forms that are not on a page of Django's for one row."""
OBJECT_TOOL: Final = "div" if HAS_UNFOLD else "li"
"""The element of an entry of a list's object tools: Django's are a list."""

__all__ = ["FORM_STYLES", "HAS_UNFOLD", "OBJECT_TOOL", "ModelAdmin"]
