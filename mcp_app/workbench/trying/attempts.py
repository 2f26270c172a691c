"""Rules, over values: who may try what, and as whom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from mcp_app.kinds import Effect


class As(StrEnum):
    """As whom something is tried."""

    ME = "me"
    TOKEN = "token"  # noqa: S105 - a choice
    NOBODY = "nobody"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What somebody wants to try, and what they may do."""

    who: As
    is_working_copy: bool
    is_dry: bool
    only_reads: bool
    effect: Effect
    may_publish: bool
    may_try_as: bool
    is_superuser: bool
    """Whether the person who tries is a superuser."""
    as_superuser: bool = False
    """Whether the user as whom they try is a superuser."""

    @property
    def is_real(self) -> bool:
        """Whether its changes are kept."""
        return self.effect is not Effect.NOTHING and not self.is_dry


def refusal_of_attempt(attempt: Attempt) -> str:
    """Return why something may not be tried like this; "" if it may."""
    if attempt.who is As.USER:
        return _refusal_as_another(attempt)
    if attempt.is_working_copy and attempt.is_real and not attempt.may_publish:
        return _(
            "Only who may publish runs a working copy for real. Choose a dry run, or"
            " the published version."
        )
    return ""


def _refusal_as_another(attempt: Attempt) -> str:
    if not attempt.may_try_as:
        return _("This needs the right “%(right)s”.") % {
            "right": _("Can try as another user")
        }
    if attempt.as_superuser and not attempt.is_superuser:
        return _("Only a superuser can try as a superuser.")
    if attempt.is_working_copy:
        return _("Only the published version is run as somebody else.")
    if not attempt.only_reads and not attempt.is_superuser:
        # A dry run does not undo e-mails and calls of other sites.
        return _("Only what reads is run as somebody else.")
    # A tool that only reads another site has nothing in the database to undo.
    may_stay = attempt.only_reads and attempt.effect is not Effect.DATABASE
    if attempt.is_real and not may_stay:
        return _("As somebody else there are only dry runs.")
    return ""
