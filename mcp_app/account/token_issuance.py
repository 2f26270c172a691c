"""Make, replace, end, rename and forget tokens; the admin's log names who did it.

`by` is the person who does it; None stands for the command line, which the log of the
admin, a log of users, cannot name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import IntegrityError, router
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account import connected_apps
from mcp_app.account.presentation import ADDITION, CHANGE, DELETION, log_of
from mcp_app.models import AccessToken
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction
from mcp_app.site_time import local_time

if TYPE_CHECKING:
    from mcp_app.interface.definitions import Label

ALREADY: Final[Label] = gettext_lazy(
    "This token was already shown. If it is lost, make another and delete this one."
)

NO_REPLACEMENT: Final[Label] = gettext_lazy(
    "A connected app is not replaced. End it, and sign in again in the program."
)


class AlreadyShown(Exception):
    """A page that made a token was sent again; `row` is the row of that token."""

    def __init__(self, row: AccessToken) -> None:
        super().__init__(str(ALREADY))
        self.row = row


class Irreplaceable(Exception):
    """The token has expired or was revoked, or it is a connected app."""


def make(
    by: AbstractBaseUser | None, *, made_with: UUID | None = None, **columns: Any
) -> tuple[AccessToken, Secret]:
    """Make a token from what `AccessToken.objects.make` takes.

    `made_with` names the page that asked: sent twice, it makes one token.
    Raises `AlreadyShown` and `ValidationError`.
    """
    _check_new(made_with)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            row, token = AccessToken.objects.make(**columns, made_with=made_with)
            log_of(by, row, ADDITION, _made(row))
    except (IntegrityError, ValidationError):
        # Two requests of one page ran at once, and the other one was faster.
        _check_new(made_with)
        raise
    return row, token


def replace(
    by: AbstractBaseUser | None,
    row: AccessToken,
    overlap: timedelta,
    *,
    made_with: UUID | None = None,
) -> tuple[AccessToken, Secret]:
    """Make the next token of a family; the old one expires after `overlap`.

    Without an overlap the old one is revoked, and what it has open ends.
    Raises `AlreadyShown` and `Irreplaceable`.
    """
    if row.is_app:
        raise Irreplaceable(str(NO_REPLACEMENT))
    _check_new(made_with)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            new, token = row.replace(overlap, made_with=made_with)
            if not overlap:
                row.revoke()
            log_of(by, row, CHANGE, _replaced(row, new, overlap))
            log_of(by, new, ADDITION, _made(new))
    except (IntegrityError, ValidationError, ValueError) as error:
        _check_new(made_with)
        if isinstance(error, ValueError):
            raise Irreplaceable(_("This token has ended. Make a new one.")) from None
        raise
    return new, token


def end(by: AbstractBaseUser | None, row: AccessToken) -> None:
    """Revoke a token or end an app; every process refuses it once this returns."""
    if row.is_app:
        connected_apps.end(by, row)
        return
    if row.revoked is not None:
        return
    with own_transaction(router.db_for_write(AccessToken)):
        row.revoke()
        said = _("Deleted the token “%(token)s”. It lets nobody in any more.")
        log_of(by, row, CHANGE, said % {"token": row})


def forget(by: AbstractBaseUser, row: AccessToken) -> None:
    """Delete the row of a token or an app that has ended."""
    said = _("Took the token “%(token)s”, which had ended, from the list.")
    if row.is_app:
        said = _("Took the connected app “%(token)s”, which had ended, from the list.")
    with own_transaction(router.db_for_write(AccessToken)):
        log_of(by, row, DELETION, said % {"token": row})
        row.delete()


def rename(by: AbstractBaseUser, row: AccessToken) -> None:
    """Store the new name of a token or an app."""
    said = _("Renamed this token to “%(token)s”.")
    if row.is_app:
        said = _("Renamed this connected app to “%(token)s”.")
    with own_transaction(router.db_for_write(AccessToken)):
        row.save(update_fields=["name"])
        log_of(by, row, CHANGE, said % {"token": row})


def _check_new(made_with: UUID | None) -> None:
    """Raise `AlreadyShown` if a page has made its token."""
    if made_with is None:
        return
    row = AccessToken.objects.filter(made_with=made_with).first()
    if row is not None:
        raise AlreadyShown(row)


def _made(row: AccessToken) -> str:
    if row.expires is None:
        said = _("Made the token “%(token)s” for %(user)s (%(may)s). It never ends.")
    else:
        said = _(
            "Made the token “%(token)s” for %(user)s (%(may)s). It ends on %(end)s."
        )
    return said % {
        "token": row,
        "user": row.user.get_username(),
        "may": row.get_may_display(),
        "end": _date(row),
    }


def _replaced(row: AccessToken, new: AccessToken, overlap: timedelta) -> str:
    said = _("This token was replaced by “%(token)s”, and itself ends on %(end)s.")
    if not overlap:
        said = _("This token was replaced by “%(token)s”, and itself has ended.")
    return said % {"token": new, "end": _date(row)}


def _date(row: AccessToken) -> str:
    if row.expires is None:
        return ""
    return date_format(local_time(row.expires), "DATETIME_FORMAT")
