"""Allow, change and end connected apps; the admin's log names who did it.

`by` is the person who acts; None stands for the command line.
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

from mcp_app.auth import connections, rights
from mcp_app.auth.connections import Ended, Grant
from mcp_app.auth.rights import AppEnded, Choice
from mcp_app.models import AccessToken, Connection
from mcp_app.models.history import ADDITION, CHANGE, log_actions
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.site_time import MOMENT, local_time


class ChangedMeanwhile(Exception):
    """Somebody changed the app since its page was opened."""


def allow_app(grant: Grant, idempotency_key: UUID) -> Secret:
    """Store what a person allows; return the code. Raises as `store_grant` does."""
    code, row = connections.store_grant(grant, idempotency_key)
    if row is not None:
        message = _("Let “%(app)s” connect to “%(server)s” (%(may)s).")
        values = {"app": row, "server": grant.server, "may": row.get_may_display()}
        log_actions(grant.user, [row], ADDITION, message % values)
    return code


def change_app(
    by: AbstractBaseUser, row: AccessToken, before: Choice, after: Choice
) -> None:
    """Store `after`; raise `ChangedMeanwhile` if the stored choice is not `before`.

    Raises also `AppEnded` and `ValidationError`.
    """

    def choose_after(now: Choice) -> Choice:
        if now != before:
            raise ChangedMeanwhile
        return after

    rights.change_app(row.connection, choose_after)
    if after == before:
        return
    message = _(
        "Changed this connected app: “%(name)s”, %(may)s, %(tags)s, until %(until)s."
    )
    until = after.until and date_format(local_time(after.until), MOMENT)
    values = {
        "name": after.name,
        "may": AccessToken.May(after.may).label,
        "tags": after.tags or _("all"),
        "until": until or _("never"),
    }
    log_actions(by, [row], CHANGE, message % values)


def narrow_to_reading(by: AbstractBaseUser, row: AccessToken) -> bool:
    """Let an app only look things up; return whether it could do more before."""
    if row.may == AccessToken.May.READ:
        return False
    narrow = partial(replace, may=AccessToken.May.READ.value)
    try:
        rights.change_app(row.connection, narrow)
    except AppEnded:
        return False
    message = _("Let the connected app “%(app)s” only look things up.")
    log_actions(by, [row], CHANGE, message % {"app": row})
    return True


def end_connected_apps(by: AbstractBaseUser | None, rows: Iterable[AccessToken]) -> int:
    """End connected apps in one transaction; return how many had not ended before.

    Every process refuses their keys once this returns.
    """
    return persistently(partial(_end_in_transaction, by, list(rows)))


def _end_in_transaction(by: AbstractBaseUser | None, rows: list[AccessToken]) -> int:
    def end_reason_of(row: AccessToken) -> Ended:
        is_owner = by is not None and by.pk == row.user_id
        return Ended.PERSON if is_owner else Ended.STAFF

    with own_transaction(router.db_for_write(AccessToken)):
        ended = rights.end_connected_apps(rows, end_reason_of)
        log_actions(by, ended, CHANGE, _("Ended this connected app."))
    return len(ended)


def open_apps(user: AbstractBaseUser) -> QuerySet[AccessToken]:
    """Return the apps of a user that nobody has ended."""
    rows = AccessToken.objects.filter(user=user.pk, revoked=None)
    apps = rows.filter(connection__isnull=False)
    return apps.select_related("connection").order_by("pk")


def connections_of(user: AbstractBaseUser, client_id: str) -> list[Connection]:
    """Return the open connections of a program with a user's account."""
    rows = Connection.objects.filter(token__user=user.pk, token__revoked=None)
    # Compare in Python: `client_id` has no index, and a user has few apps.
    open_rows = rows.select_related("token").order_by("-token__created")
    return [row for row in open_rows if row.client_id == client_id]
