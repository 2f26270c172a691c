"""The fixture set as a Django app."""

from __future__ import annotations

from django.apps import AppConfig

from tests.disabling import disable_what_the_environment_names


class DrillConfig(AppConfig):
    name = "tests.drill"
    label = "drill"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        disable_what_the_environment_names()
