"""Connected apps in words: which program, where it is, what it may and does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.account import presentation
from mcp_app.models import AccessToken, Call, Connection
from mcp_app.protocol.oauth.redirects import is_on_own_computer

DAYS: Final = 30
DAY_MS: Final = 86_400_000
MOST_CALLS: Final = 10_000
"""So many of a user's newest calls are counted."""


def host_of(connection: Connection) -> str:
    """Return where a program is, as far as that is proved."""
    if is_on_own_computer(connection.redirect_uri):
        return _("a program on this computer")
    return connection.client_host or connection.redirect_host


def claim_of(connection: Connection) -> str:
    """Return how sure it is which program this is."""
    if not connection.client_host:
        return _("It gave itself its name. Nobody has checked that.")
    told = {"host": connection.client_host}
    if is_on_own_computer(connection.redirect_uri):
        return _("It says that it is of %(host)s. Nobody can check that.") % told
    return _("It is known by a document of %(host)s.") % told


def may_of(may: str) -> str:
    """Return what a program may, or asked for, in the words of its choice."""
    if may == AccessToken.May.CHANGE:
        return _("look things up and change them")
    return _("only look things up")


def until_of(connection: Connection) -> str:
    """Return the day that its owner has said."""
    if connection.until is None:
        return _("never")
    return presentation.when(connection.until)


@dataclass(frozen=True, slots=True)
class Calls:
    """The newest calls of a user, by the family of the token; `cut` if not all."""

    counts: Mapping[str, int]
    cut: bool

    def words(self, row: AccessToken) -> str:
        count = self.counts.get(row.family, 0)
        said = f"{count:,}"
        return _("%(count)s or more") % {"count": said} if self.cut else said


NO_CALLS: Final = Calls({}, cut=False)


def calls_of(user: AbstractBaseUser) -> Calls:
    """Count the calls of a user in the last 30 days, with one statement."""
    since = int(time.time() * 1_000) - DAYS * DAY_MS
    counts = Call.objects.by_client(user.get_username(), since, MOST_CALLS)
    return Calls(counts, sum(counts.values()) >= MOST_CALLS)


def ended_words(count: int) -> str:
    """Return what is said once so many apps have been ended."""
    said = ngettext(
        "Ended: %d connected app lets nobody in any more.",
        "Ended: %d connected apps let nobody in any more.",
        count,
    )
    return said % count
