"""Where advice is given: by `check`, and not by every other management command.

Django runs all checks before most commands.  Whoever makes a token or a user does not
want to read what could be better in twenty tools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

from django.core import checks
from django.core.management import get_commands

Check: TypeAlias = Callable[..., list[checks.CheckMessage]]

_PROGRAMS: Final = {"manage", "django-admin"}
"""Programs whose first argument is a management command."""


def advising(check: Check) -> Check:
    """Return a check that reports infos only if no other command than `check` runs."""

    @wraps(check)
    def checked(*arguments: Any, **options: Any) -> list[checks.CheckMessage]:
        found = check(*arguments, **options)
        if _is_another_command(sys.argv):
            return [each for each in found if each.level > checks.INFO]
        return found

    return checked


def _is_another_command(arguments: Sequence[str]) -> bool:
    program, command = [*arguments, "", ""][:2]
    name = Path(program).stem
    # `python -m` runs the __main__ of any package: Django's, a site's own, pytest's.
    runs_commands = name in _PROGRAMS or (
        name in ("__main__", "django") and command in get_commands()
    )
    return runs_commands and command not in ("", "check", "test")
