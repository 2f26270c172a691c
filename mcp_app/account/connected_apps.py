"""Allow, change and end connected apps; the admin's log names who did it.

`by` is the person who does it; None stands for the command line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.db import router
from django.db.models import QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.account import presentation
from mcp_app.account.forms import ALL, MOST_TAGS, SOME, RightsChoice
from mcp_app.account.presentation import ADDITION, CHANGE, log_all, log_of
from mcp_app.auth import connections, rights
from mcp_app.auth.connections import Ended, Grant
from mcp_app.auth.rights import AppEnded, Choice
from mcp_app.models import AccessToken, Call, Connection
from mcp_app.models.fields import digest, words
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.protocol.oauth.addresses import is_on_own_computer
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

    rights.change(row.connection, choose)
    if after != before:
        log_of(by, row, CHANGE, _changed(row, after))


def narrow(by: AbstractBaseUser, row: AccessToken) -> bool:
    """Let an app only look things up; return whether it could do more before."""
    if row.may == AccessToken.May.READ:
        return False
    try:
        rights.change(row.connection, partial(replace, may=AccessToken.May.READ.value))
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
        ended = rights.end_all(rows, why_of)
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


# -- app presentation ------------------------------------------------------------------
# Connected apps in words: which program, where it is, what it may and does.


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


# -- app form --------------------------------------------------------------------------
# The form of a connected app: its name, and what it may from now on.


KEEP: Final = "keep"


class AppForm(RightsChoice):
    """What an app is called and may; `tags` are those of the tools that it could see.

    `before` is what held when the page was opened.
    """

    before = forms.CharField(widget=forms.HiddenInput)
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=AccessToken._meta.get_field("name").max_length,
    )

    field_order = ["before", "name"]

    def __init__(
        self, data: Any, *, connection: Connection, tags: Counter[str]
    ) -> None:
        now = Choice.of(connection)
        self._now = now
        known = Counter(tags)
        for tag in words(now.tags):
            # One that nothing has any more stays chosen, or all would be allowed.
            known.setdefault(tag, 0)
        super().__init__(
            data,
            may_ask=connection.may_ask,
            tags=known,
            initial=_initial(now, many=len(known) > MOST_TAGS),
        )
        if "which" in self.fields:
            self.fields["which"].required = True

    def _choices(self) -> Iterator[tuple[str, str]]:
        end = self._now.until
        date = _("no date") if end is None else date_format(local_time(end))
        yield KEEP, _("As it is: %(date)s") % {"date": date}
        yield from super()._choices()

    def is_current(self) -> bool:
        """Whether nobody has changed the app since the page was opened."""
        return bool(self.cleaned_data["before"] == _state(self._now))

    def end(self) -> datetime | None:
        if self.cleaned_data["ends"] == KEEP:
            return self._now.until
        return super().end()

    def choice(self) -> Choice:
        """Return what is to hold from now on, from a valid form."""
        return Choice(
            name=self.cleaned_data["name"],
            may=self.cleaned_data["may"],
            tags=self.chosen_tags(),
            until=self.end(),
        )


def _initial(now: Choice, *, many: bool) -> dict[str, Any]:
    return {
        "before": _state(now),
        "name": now.name,
        "may": now.may,
        "which": SOME if now.tags else ALL,
        "tags": now.tags if many else list(words(now.tags)),
        "ends": KEEP,
    }


def _state(choice: Choice) -> str:
    return digest(str(choice))
