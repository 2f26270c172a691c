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

from mcp_app.account.forms import ALL, MAX_TAGS, SOME, RightsChoice
from mcp_app.account.presentation import ADDITION, CHANGE, log_action, log_actions
from mcp_app.auth import connections, rights
from mcp_app.auth.connections import Ended, Grant
from mcp_app.auth.rights import AppEnded, Choice
from mcp_app.models import AccessToken, Call, Connection
from mcp_app.models.call_rows import CallQuery
from mcp_app.models.fields import digest, split_words
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.protocol.oauth.addresses import is_on_own_computer
from mcp_app.site_time import DAY, MOMENT, local_time, time_html


class ChangedMeanwhile(Exception):
    """Somebody changed the app since its page was opened."""


def allow_app(grant: Grant, idempotency_key: UUID) -> Secret:
    """Store what a person allows, and return the code; raises as `connections` does."""
    code, row = connections.store_grant(grant, idempotency_key)
    if row is not None:
        message = _("Let “%(app)s” connect to “%(server)s” (%(may)s).")
        values = {"app": row, "server": grant.server, "may": row.get_may_display()}
        log_action(grant.user, row, ADDITION, message % values)
    return code


def change_app(
    by: AbstractBaseUser, row: AccessToken, before: Choice, after: Choice
) -> None:
    """Store what the owner of an app wants, who saw what it was `before`.

    Raises `AppEnded`, `ChangedMeanwhile` and `ValidationError`.
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
    log_action(by, row, CHANGE, message % values)


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
    log_action(by, row, CHANGE, message % {"app": row})
    return True


def end_connected_apps(by: AbstractBaseUser | None, rows: Iterable[AccessToken]) -> int:
    """End connected apps together; return how many had not ended before.

    Every process refuses their keys once this returns.
    """
    return persistently(partial(_end_in_transaction, by, list(rows)))


def _end_in_transaction(by: AbstractBaseUser | None, rows: list[AccessToken]) -> int:
    def end_reason_of(row: AccessToken) -> Ended:
        own = by is not None and by.pk == row.user_id
        return Ended.PERSON if own else Ended.STAFF

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
    # A text cannot be indexed on all databases; a user has few apps.
    open_rows = rows.select_related("token").order_by("-token__created")
    return [each for each in open_rows if each.client_id == client_id]


# -- app presentation ------------------------------------------------------------------
# Connected apps in words: which program, where it is, what it may and does.

DAYS: Final = 30
DAY_MS: Final = 86_400_000
MOST_CALLS: Final = 10_000
"""So many of a user's newest calls are counted."""


def program_host(connection: Connection) -> str:
    """Return where a program is, as far as that is proved."""
    if is_on_own_computer(connection.redirect_uri):
        return _("a program on this computer")
    return connection.client_host or connection.redirect_host


def identity_claim(connection: Connection) -> str:
    """Return how sure it is which program this is."""
    if not connection.client_host:
        return _("It gave itself its name. Nobody has checked that.")
    values = {"host": connection.client_host}
    if is_on_own_computer(connection.redirect_uri):
        return _("It says that it is of %(host)s. Nobody can check that.") % values
    return _("It is known by a document of %(host)s.") % values


def permission_words(may: str) -> str:
    """Return what a program may, or asked for, in the words of its choice."""
    if may == AccessToken.May.CHANGE:
        return _("look things up and change them")
    return _("only look things up")


def until_words(connection: Connection) -> str:
    """Return the day that its owner has said."""
    if connection.until is None:
        return _("never")
    return time_html(connection.until)


@dataclass(frozen=True, slots=True)
class Calls:
    """The newest calls of a user, by the family of the token; `cut` if not all."""

    counts: Mapping[str, int]
    cut: bool

    def count_words(self, row: AccessToken) -> str:
        count = self.counts.get(row.family, 0)
        digits = f"{count:,}"
        return _("%(count)s or more") % {"count": digits} if self.cut else digits


NO_CALLS: Final = Calls({}, cut=False)


def recent_calls_of(user: AbstractBaseUser) -> Calls:
    """Count the calls of a user in the last 30 days, with one statement."""
    since = int(time.time() * 1_000) - DAYS * DAY_MS
    sought = CallQuery(since, ways=[("user_name", "=", user.get_username())])
    counts = Counter[str]()
    for each in Call.objects.clients(sought, MOST_CALLS):
        counts[each.principal_client] += each.calls
    return Calls(counts, counts.total() >= MOST_CALLS)


def ended_words(count: int) -> str:
    """Return what is said once so many apps have been ended."""
    message = ngettext(
        "Ended: %d connected app lets nobody in any more.",
        "Ended: %d connected apps let nobody in any more.",
        count,
    )
    return message % count


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
        self._now = now = Choice.of_connection(connection)
        chosen = list(split_words(now.tags))
        # A tag that nothing has any more stays chosen, or all would be allowed.
        known = Counter({**dict.fromkeys(chosen, 0), **tags})
        initial = {
            "before": _state_digest(now),
            "name": now.name,
            "may": now.may,
            "which": SOME if now.tags else ALL,
            "tags": now.tags if len(known) > MAX_TAGS else chosen,
            "ends": KEEP,
        }
        super().__init__(data, may_ask=connection.may_ask, tags=known, initial=initial)
        if "which" in self.fields:
            self.fields["which"].required = True

    def _expiry_choices(self) -> Iterator[tuple[str, str]]:
        end = self._now.until
        date = _("no date") if end is None else date_format(local_time(end), DAY)
        yield KEEP, _("As it is: %(date)s") % {"date": date}
        yield from super()._expiry_choices()

    def is_current(self) -> bool:
        """Whether nobody has changed the app since the page was opened."""
        return bool(self.cleaned_data["before"] == _state_digest(self._now))

    def chosen_end(self) -> datetime | None:
        if self.cleaned_data["ends"] == KEEP:
            return self._now.until
        return super().chosen_end()

    def chosen_rights(self) -> Choice:
        """Return what is to hold from now on, from a valid form."""
        return Choice(
            name=self.cleaned_data["name"],
            may=self.cleaned_data["may"],
            tags=self.chosen_tags(),
            until=self.chosen_end(),
        )


def _state_digest(choice: Choice) -> str:
    return digest(str(choice))
