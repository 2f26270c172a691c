"""Allow, change and end connected apps; the admin's log names who did it.

`by` is the person who does it; None stands for the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import router
from django.db.models import QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from mcp_app.account.admin_log import ADDITION, CHANGE, log_all, log_of
from mcp_app.auth import app_changes, connections
from mcp_app.auth.app_changes import AppEnded, Choice
from mcp_app.auth.connections import Ended, Grant
from mcp_app.models import AccessToken, Connection
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.site_time import local_time


class ChangedMeanwhile(Exception):
    """Somebody changed the app since its page was opened."""


def allow(grant: Grant, made_with: UUID) -> Secret:
    """Store what a person allows, and return the code; raises as `connections` does."""
    code, row = connections.allow(grant, made_with)
    if row is not None:
        said = _("Let “%(app)s” connect to “%(server)s” (%(may)s).")
        shown = {
            "app": row,
            "server": grant.server,
            "may": row.get_may_display(),
        }
        log_of(grant.user, row, ADDITION, said % shown)
    return code


def change(
    by: AbstractBaseUser, row: AccessToken, before: Choice, after: Choice
) -> None:
    """Store what the owner of an app wants, who saw what it was `before`.

    Raises `AppEnded`, `ChangedMeanwhile` and `ValidationError`.
    """

    def choose(now: Choice) -> Choice:
        if now != before:
            raise ChangedMeanwhile
        return after

    app_changes.change(row.connection, choose)
    if after != before:
        log_of(by, row, CHANGE, _changed(row, after))


def narrow(by: AbstractBaseUser, row: AccessToken) -> bool:
    """Let an app only look things up; return whether it could do more before."""
    if row.may == AccessToken.May.READ:
        return False
    try:
        app_changes.change(
            row.connection, partial(replace, may=AccessToken.May.READ.value)
        )
    except AppEnded:
        return False
    said = _("Let the connected app “%(app)s” only look things up.")
    log_of(by, row, CHANGE, said % {"app": row})
    return True


def end(by: AbstractBaseUser | None, row: AccessToken) -> None:
    """End a connected app; every process refuses its keys once this returns."""
    end_all(by, [row])


def end_all(by: AbstractBaseUser | None, rows: Iterable[AccessToken]) -> int:
    """End connected apps together; return how many had not ended before."""
    return persistently(partial(_end_all, by, list(rows)))


def _end_all(by: AbstractBaseUser | None, rows: list[AccessToken]) -> int:
    def why_of(row: AccessToken) -> Ended:
        own = by is not None and by.pk == row.user_id
        return Ended.PERSON if own else Ended.STAFF

    with own_transaction(router.db_for_write(AccessToken)):
        ended = app_changes.end_all(rows, why_of)
        log_all(by, ended, CHANGE, _("Ended this connected app."))
    return len(ended)


def open_apps(user: AbstractBaseUser) -> QuerySet[AccessToken]:
    """Return the apps of a user that nobody has ended."""
    rows = AccessToken.objects.filter(user=user.pk, revoked=None)
    apps = rows.filter(connection__isnull=False)
    return apps.select_related("connection").order_by("pk")


def connections_of(user: AbstractBaseUser, client_id: str) -> list[Connection]:
    """Return the open connections of a program with a user's account."""
    rows = Connection.objects.filter(token__user=user.pk, token__revoked=None)
    # A text cannot be indexed on all databases; a user has few apps.
    open_rows = rows.select_related("token").order_by("-token__created")
    return [each for each in open_rows if each.client_id == client_id]


def _changed(row: AccessToken, after: Choice) -> str:
    said = _(
        "Changed this connected app: “%(name)s”, %(may)s, %(tags)s, until %(until)s."
    )
    until = after.until and date_format(local_time(after.until), "DATETIME_FORMAT")
    return said % {
        "name": after.name,
        "may": AccessToken.May(after.may).label,
        "tags": after.tags or _("all"),
        "until": until or _("never"),
    }
