"""The fixture set as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class DrillConfig(AppConfig):
    name = "tests.drill"
    label = "drill"
    default_auto_field = "django.db.models.BigAutoField"
