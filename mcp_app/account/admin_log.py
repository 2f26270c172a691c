"""What the admin's log says of tokens and apps, if the site has that log.

`by` is the person who did it; None stands for the command line, which the log of the
admin, a log of users, cannot name.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser

from mcp_app.models import AccessToken

ADDITION, CHANGE, DELETION = 1, 2, 3
"""Flags of the admin's log, whose constants need its app."""


def log_of(
    by: AbstractBaseUser | None, row: AccessToken, action: int, said: str
) -> None:
    """Write a message to the admin's log, if the site has one and the user is known."""
    log_all(by, [row], action, said)


def log_all(
    by: AbstractBaseUser | None, rows: Sequence[AccessToken], action: int, said: str
) -> None:
    """Write the same message of several rows, with one statement."""
    if by is None or not rows or not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import LogEntry  # noqa: PLC0415 - needs the admin

    log = LogEntry.objects
    if len(rows) == 1:
        log.log_actions(str(by.pk), rows, action, said, single_object=True)
    else:
        log.log_actions(str(by.pk), rows, action, said)
