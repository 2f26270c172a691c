"""The lines of the admin's log: what a person did to which rows."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model

ADDITION, CHANGE, DELETION = 1, 2, 3
"""Flags of the admin's log; its own constants can be read only if its app is there."""


def log_actions(
    by: AbstractBaseUser | AnonymousUser | None,
    rows: Sequence[Model],
    flag: int,
    message: str,
) -> None:
    """Write the same message of several rows, with one statement.

    Nothing is written if the site has no such log, or `by` is None: that stands for the
    command line, which a log of users cannot name.
    """
    if by is None or not rows or not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import LogEntry  # noqa: PLC0415 - needs the admin

    text = f"{message} {getattr(by, 'came_over', '')}".strip()
    LogEntry.objects.log_actions(str(by.pk), rows, flag, text)
