"""The fixture set as a Django app."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from threading import Lock
from typing import NoReturn

from django.apps import AppConfig

from tests.conformance.disabling import disable_what_the_environment_names
from tests.secrecy import watch


class DrillConfig(AppConfig):
    name = "tests.drill"
    label = "drill"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        disable_what_the_environment_names()
        watch()
        if "coverage" in sys.modules:
            _save_once()
        say_that_fixtures_are_there()


def say_that_fixtures_are_there() -> None:
    logging.getLogger("mcp_app.drill").debug("The fixtures are there.")


def _save_once() -> None:
    """Let one thread alone save what was measured: two at once crash.

    Coverage saves where a process ends by itself, and where a thread ends it.
    """
    saving, leave = Lock(), os._exit

    def leave_alone(status: int) -> NoReturn:
        saving.acquire()
        leave(status)

    os._exit = leave_alone
    atexit.register(saving.acquire)
