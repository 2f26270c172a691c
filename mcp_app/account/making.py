"""What people do with tokens: make, replace, end and forget them, and who did it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import IntegrityError, router
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account.forms import NewTokenForm, ReplaceForm
from mcp_app.models import AccessToken
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction

if TYPE_CHECKING:
    from mcp_app.account.shown import Said

ADDITION, CHANGE, DELETION = 1, 2, 3
"""Of the admin's log, which a site may be without."""
ALREADY: Final[Said] = gettext_lazy(
    "This token was already shown. If it is lost, make another and delete this one."
)


class AlreadyShown(Exception):
    """A page that made a token was sent again; `row` is that token's."""

    def __init__(self, row: AccessToken) -> None:
        super().__init__(str(ALREADY))
        self.row = row


class HasEnded(Exception):
    """A token that is to be replaced lets nobody in any more."""


def make(by: AbstractBaseUser, form: NewTokenForm) -> tuple[AccessToken, Secret]:
    """Make what a valid form asks for; raise `AlreadyShown`."""
    made_with = form.made_with(by)
    _demand_new(made_with)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            made = AccessToken.objects.make(**form.columns(), made_with=made_with)
            _log(by, made[0], ADDITION, _made(made[0]))
    except (IntegrityError, ValidationError):
        # Pressed twice: the other one was faster.
        _demand_new(made_with)
        raise
    return made


def replace(
    by: AbstractBaseUser, row: AccessToken, form: ReplaceForm
) -> tuple[AccessToken, Secret]:
    """Make the next token of a family; raise `AlreadyShown` or `HasEnded`."""
    made_with, overlap = form.made_with(by), form.overlap_time()
    _demand_new(made_with)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            made = row.replace(overlap, made_with=made_with)
            if not overlap:
                # Whoever has it open by the old one ends, too.
                row.revoke()
            _log(by, row, CHANGE, _replaced(row, made[0], overlap))
            _log(by, made[0], ADDITION, _made(made[0]))
    except (IntegrityError, ValidationError, ValueError) as error:
        _demand_new(made_with)
        if isinstance(error, ValueError):
            raise HasEnded(_("This token has ended. Make a new one.")) from None
        raise
    return made


def end(by: AbstractBaseUser, row: AccessToken) -> None:
    """Let nobody in by a token any more; true in every process once it returns."""
    if row.revoked is not None:
        return
    with own_transaction(router.db_for_write(AccessToken)):
        row.revoke()
        said = _("Deleted the token “%(token)s”: it lets nobody in any more.")
        _log(by, row, CHANGE, said % {"token": row})


def forget(by: AbstractBaseUser, row: AccessToken) -> None:
    """Take a token that has ended from the lists."""
    with own_transaction(router.db_for_write(AccessToken)):
        said = _("Took the token “%(token)s”, which had ended, from the list.")
        _log(by, row, DELETION, said % {"token": row})
        row.delete()


def rename(by: AbstractBaseUser, row: AccessToken) -> None:
    """Store the new name of a token."""
    with own_transaction(router.db_for_write(AccessToken)):
        row.save(update_fields=["name"])
        _log(by, row, CHANGE, _("Named it “%(token)s”.") % {"token": row})


def _demand_new(made_with: UUID) -> None:
    found = AccessToken.objects.filter(made_with=made_with).first()
    if found is not None:
        raise AlreadyShown(found)


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
    said = _("Replaced it by the token “%(token)s”. This one ends on %(end)s.")
    if not overlap:
        said = _("Replaced it by the token “%(token)s”. This one has ended.")
    return said % {"token": new, "end": _date(row)}


def _date(row: AccessToken) -> str:
    if row.expires is None:
        return ""
    return date_format(localtime(row.expires), "DATETIME_FORMAT")


def _log(by: AbstractBaseUser, row: AccessToken, action: int, said: str) -> None:
    """Write it into the admin's log, where the site has one."""
    if not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import LogEntry  # noqa: PLC0415 - as said

    LogEntry.objects.log_actions(str(by.pk), [row], action, said, single_object=True)
