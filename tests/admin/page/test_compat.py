"""The admin's pages are Django's; tests/browser/test_unfold.py has unfold's."""

from __future__ import annotations

from django.contrib import admin

from mcp_app.admin.page import compat


def test_pages_are_djangos() -> None:
    assert not compat.HAS_UNFOLD
    assert compat.ModelAdmin is admin.ModelAdmin
    assert compat.OBJECT_TOOL == "li"
    assert compat.FORM_STYLES == ("admin/css/forms.css",)
    for model, each in admin.site._registry.items():
        if model._meta.app_label == "mcp_app":
            assert isinstance(each, compat.ModelAdmin)
