"""Make, replace, end, rename and forget tokens; the admin's log names who did it.

`by` is the person who acts.  None stands for the command line, which the admin's log
cannot name, because it names users.
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
from django.views.decorators.debug import sensitive_variables

from mcp_app.account import connected_apps
from mcp_app.models import AccessToken
from mcp_app.models.history import ADDITION, CHANGE, DELETION, log_actions
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction
from mcp_app.publishing.rights import require_right
from mcp_app.site_time import MOMENT, local_time

if TYPE_CHECKING:
    from mcp_app.interface.definitions import Label

ALREADY: Final[Label] = gettext_lazy(
    "This token was already shown. If it is lost, make another and delete this one."
)

NO_REPLACEMENT: Final[Label] = gettext_lazy(
    "A connected app is not replaced. End it, and sign in again in the program."
)
MANAGE: Final = "manage_tokens"
"""The right to see and to delete everyone's tokens, and to offer some by links."""


class AlreadyShown(Exception):
    """A page that made a token was sent again; `row` is the row of that token."""

    def __init__(self, row: AccessToken) -> None:
        super().__init__(str(ALREADY))
        self.row = row


class Irreplaceable(Exception):
    """The token has expired or was revoked, or it is a connected app."""


def issue_token(
    by: AbstractBaseUser | None, *, idempotency_key: UUID | None = None, **columns: Any
) -> tuple[AccessToken, Secret]:
    """Make a token from the arguments of `AccessToken.objects.make`.

    If a page (`idempotency_key`) is sent twice, it makes one token.  A `maker`, who
    offers it by a link, needs the right.  Raises `AlreadyShown`, `ValidationError`.
    """
    if maker := columns.get("maker"):
        require_right(maker, MANAGE)
    _check_new(idempotency_key)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            row, token = AccessToken.objects.make(**columns, made_with=idempotency_key)
            log_actions(by, [row], ADDITION, _creation_message(row))
    except (IntegrityError, ValidationError):
        # The page was sent twice at once, and the other request was faster.
        _check_new(idempotency_key)
        raise
    return row, token


@sensitive_variables("code")
def take_token(by: AbstractBaseUser, code: str) -> tuple[AccessToken, Secret]:
    """Make the token that a link offers to a person, once.

    Raises `ValidationError`, also if the maker of the link has lost the right to it.
    """
    rows = AccessToken.objects.using(router.db_for_write(AccessToken))
    with own_transaction(rows.db):
        row = rows.of(code).filter(user=by.pk).select_related("maker").first()
        maker = None if row is None else row.maker
        may_offer = maker and maker.is_active and maker.has_perm(f"mcp_app.{MANAGE}")
        token = rows.take(row) if row and may_offer else None
        if row is None or token is None:
            message = _(
                "This link is not good, or not any more: it was used, is older than 24"
                " hours, was taken back, or is for somebody else. Ask whoever sent it."
            )
            raise ValidationError(message)
        row.refresh_from_db()
        log_actions(by, [row], ADDITION, _creation_message(row))
    return row, token


def replace_token(
    by: AbstractBaseUser | None,
    row: AccessToken,
    overlap: timedelta,
    *,
    idempotency_key: UUID | None = None,
) -> tuple[AccessToken, Secret]:
    """Make the next token of a family; the old one expires after `overlap`.

    If `overlap` is 0, the old token is revoked, and everything that it has open ends.
    Raises `AlreadyShown` and `Irreplaceable`.
    """
    if row.is_app:
        raise Irreplaceable(str(NO_REPLACEMENT))
    if row.public_key:
        raise Irreplaceable(_("Make another one with the next key, then delete it."))
    if row.maker_id is not None:
        raise Irreplaceable(_("Nobody has used the link of this token yet."))
    _check_new(idempotency_key)
    try:
        with own_transaction(router.db_for_write(AccessToken)):
            new, token = row.replace(overlap, made_with=idempotency_key)
            if not overlap:
                row.revoke()
            message = _("This token was replaced by “%(token)s”, and itself has ended.")
            if overlap:
                message = _(
                    "This token was replaced by “%(token)s”, and itself ends on"
                    " %(end)s."
                )
            values = {"token": new, "end": _end_date_text(row)}
            log_actions(by, [row], CHANGE, message % values)
            log_actions(by, [new], ADDITION, _creation_message(new))
    except (IntegrityError, ValidationError, ValueError) as error:
        _check_new(idempotency_key)
        if isinstance(error, ValueError):
            raise Irreplaceable(_("This token has ended. Make a new one.")) from None
        raise
    return new, token


def end_token(by: AbstractBaseUser | None, row: AccessToken) -> None:
    """Revoke a token or end an app; every process refuses it once this returns."""
    if row.is_app:
        connected_apps.end_connected_apps(by, [row])
        return
    if row.revoked is not None:
        return
    with own_transaction(router.db_for_write(AccessToken)):
        row.revoke()
        message = _("Deleted the token “%(token)s”. It lets nobody in any more.")
        log_actions(by, [row], CHANGE, message % {"token": row})


def forget_token(by: AbstractBaseUser, row: AccessToken) -> None:
    """Delete the row of a token or an app that has ended."""
    message = _("Took the token “%(token)s”, which had ended, from the list.")
    if row.is_app:
        message = _(
            "Took the connected app “%(token)s”, which had ended, from the list."
        )
    with own_transaction(router.db_for_write(AccessToken)):
        log_actions(by, [row], DELETION, message % {"token": row})
        row.delete()


def rename_token(by: AbstractBaseUser, row: AccessToken) -> None:
    """Store the new name of a token or an app."""
    message = _("Renamed this token to “%(token)s”.")
    if row.is_app:
        message = _("Renamed this connected app to “%(token)s”.")
    with own_transaction(router.db_for_write(AccessToken)):
        row.save(update_fields=["name"])
        log_actions(by, [row], CHANGE, message % {"token": row})


def _check_new(idempotency_key: UUID | None) -> None:
    """Raise `AlreadyShown` if a page has made its token already."""
    if idempotency_key is None:
        return
    row = AccessToken.objects.filter(made_with=idempotency_key).first()
    if row is not None:
        raise AlreadyShown(row)


def _creation_message(row: AccessToken) -> str:
    message = _("Made the token “%(token)s” for %(user)s (%(may)s). It never ends.")
    if row.expires is not None:
        message = _(
            "Made the token “%(token)s” for %(user)s (%(may)s). It ends on %(end)s."
        )
    return message % {
        "token": row,
        "user": row.user.get_username(),
        "may": row.get_may_display(),
        "end": _end_date_text(row),
    }


def _end_date_text(row: AccessToken) -> str:
    return "" if row.expires is None else date_format(local_time(row.expires), MOMENT)
