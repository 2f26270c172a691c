"""The admin's pages are Django's; tests/browser/test_unfold.py has unfold's."""

from __future__ import annotations

from django.contrib import admin

from mcp_app.admin.page import concurrency


def test_pages_are_djangos() -> None:
    assert not concurrency.HAS_UNFOLD
    assert concurrency.ModelAdmin is admin.ModelAdmin
    assert concurrency.OBJECT_TOOL == "li"
    assert concurrency.FORM_STYLES == ("admin/css/forms.css",)
    for model, each in admin.site._registry.items():
        if model._meta.app_label == "mcp_app":
            assert isinstance(each, concurrency.ModelAdmin)
