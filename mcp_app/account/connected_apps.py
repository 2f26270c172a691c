"""Allow, change and end connected apps; the admin's log names who did it.

`by` is the person who does it; None stands for the command line.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _

from mcp_app.account.token_issuance import ADDITION, CHANGE, log_of
from mcp_app.auth import connections
from mcp_app.auth.connections import Ended, Grant
from mcp_app.models import AccessToken, Connection
from mcp_app.models.tokens import Secret


def allow(grant: Grant, made_with: UUID) -> Secret:
    """Store what a person allows, and return the code; raises as `connections` does."""
    before = AccessToken.objects.filter(made_with=made_with).exists()
    code = connections.allow(grant, made_with)
    if not before:
        row = AccessToken.objects.get(made_with=made_with)
        said = _("Let “%(app)s” connect to “%(server)s” (%(may)s).")
        shown = {
            "app": row,
            "server": grant.server,
            "may": row.get_may_display(),
        }
        log_of(grant.user, row, ADDITION, said % shown)
    return code


def end(by: AbstractBaseUser | None, row: AccessToken) -> None:
    """End a connected app; every process refuses its keys once this returns."""
    if row.revoked is not None:
        return
    own = by is not None and by.pk == row.user_id
    connections.end(row.connection, Ended.PERSON if own else Ended.STAFF)
    log_of(by, row, CHANGE, _("Ended the connected app “%(app)s”.") % {"app": row})


def connections_of(user: AbstractBaseUser, client_id: str) -> list[Connection]:
    """Return the open connections of a program with a user's account."""
    rows = Connection.objects.filter(token__user=user.pk, token__revoked=None)
    # A text cannot be indexed on all databases; a user has few apps.
    open_rows = rows.select_related("token").order_by("-token__created")
    return [each for each in open_rows if each.client_id == client_id]
