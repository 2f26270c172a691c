"""The base of all admin pages: django-unfold's if the site uses it, else Django's.

Without its own base class, unfold's pages have fields without borders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
elif apps.is_installed("unfold"):
    from unfold.admin import ModelAdmin
else:
    from django.contrib.admin import ModelAdmin

__all__ = ["ModelAdmin"]
