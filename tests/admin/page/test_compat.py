"""Whose class the admin's pages are of: Django's, or unfold's where the site has it."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from django.contrib import admin

from mcp_app.admin.page import compat
from tests.drill.running import ROOT, inherited

PROGRAM: Final = """
import django
django.setup()
from django.contrib import admin
from django.core.management import call_command
from unfold.admin import ModelAdmin
call_command("check")
ours = [
    type(each)
    for model, each in admin.site._registry.items()
    if model._meta.app_label == "mcp_app"
]
print(len(ours), all(issubclass(each, ModelAdmin) for each in ours))
"""
"""unfold has all template tags loaded while its own class is made."""


def ours() -> list[type]:
    return [
        type(each)
        for model, each in admin.site._registry.items()
        if model._meta.app_label == "mcp_app"
    ]


def test_pages_are_djangos() -> None:
    assert not compat.HAS_UNFOLD
    assert compat.ModelAdmin is admin.ModelAdmin
    assert compat.OBJECT_TOOL == "li"
    assert compat.FORM_STYLES == ("admin/css/forms.css",)


def test_pages_are_unfolds() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            **inherited(),
            "UNFOLD": "there",
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == f"{len(ours())} True"
