"""What a connected app may, changed later, and the end of several together.

No app may do more than its program asked for.  Everything here blocks.  A row is locked
while it is looked at and changed.  The change of its user's rights is recorded in the
same transaction, so that every open stream hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from django.db import router
from django.utils import timezone

from mcp_app.auth.connections import end_of, lock
from mcp_app.auth.rights import record_rights
from mcp_app.models import AccessToken, Connection
from mcp_app.models.tokens import AT_ONCE
from mcp_app.models.transactions import own_transaction, persistently


class AppEnded(Exception):
    """The app has ended: nothing of it can be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What an app is called and may; `tags` are words, `until` is its latest end."""

    name: str
    may: str
    tags: str
    until: datetime | None

    @classmethod
    def of(cls, connection: Connection) -> Choice:
        """Return what holds for an app now."""
        row = connection.token
        return cls(name=row.name, may=row.may, tags=row.tags, until=connection.until)


def change(connection: Connection, choose: Callable[[Choice], Choice]) -> Choice:
    """Store what `choose` makes of what holds now, and return it.

    Raises `AppEnded`, `ValueError` for more than the program asked for,
    `ValidationError`, and what `choose` raises; then nothing is changed.
    """
    return persistently(partial(_changed, connection, choose))


def _changed(connection: Connection, choose: Callable[[Choice], Choice]) -> Choice:
    with own_transaction(router.db_for_write(AccessToken)):
        current, now = lock(connection), timezone.now()
        if current is None or current.token.has_ended(now):
            raise AppEnded
        before = Choice.of(current)
        after = choose(before)
        if after != before:
            _store(current, before, after, now)
    return after


def _store(
    connection: Connection, before: Choice, after: Choice, now: datetime
) -> None:
    row, columns, reads = connection.token, ["name"], AccessToken.May.READ
    if connection.may_ask == reads and after.may != reads:
        raise ValueError("The program did not ask to change things.")
    row.name, row.may, row.tags = after.name, after.may, after.tags
    row.full_clean(validate_unique=False)
    if replace(after, name=before.name) != before:
        columns += ["may", "tags", "expires"]
        connection.until = after.until
        connection.save(update_fields=["until"])
        # Until its code is used, it ends with the code.
        if connection.code_used:
            row.expires = end_of(connection, after.until, now)
    row.save(update_fields=columns)


def end_all(
    apps: Iterable[AccessToken], why_of: Callable[[AccessToken], Connection.Ended]
) -> list[AccessToken]:
    """End apps together; return those that nobody had ended before.

    Every process refuses their keys once the transaction is committed; how many
    statements that takes depends on their users, not on the apps.
    """
    # In one order, so that two who do it wait for each other.
    rows = sorted(apps, key=lambda row: row.pk)
    alias, now, ended = router.db_for_write(AccessToken), timezone.now(), []
    with own_transaction(alias):
        for at in range(0, len(rows), AT_ONCE):
            ended += _end_some(alias, rows[at : at + AT_ONCE], why_of, now)
        for user in {row.user_id for row in ended}:
            record_rights(str(user), alias)
    return ended


def _end_some(
    alias: str,
    apps: list[AccessToken],
    why_of: Callable[[AccessToken], Connection.Ended],
    now: datetime,
) -> list[AccessToken]:
    named = {row.pk: row for row in apps}
    connections = Connection.objects.using(alias)
    # They are locked as `lock` does it, before anything is looked at.
    locked = connections.filter(pk__in=named).order_by("pk").select_for_update()
    keys = list(locked.values_list("pk", flat=True))
    tokens = AccessToken.objects.using(alias).filter(pk__in=keys, revoked=None)
    tokens = tokens.order_by("pk").select_for_update()
    ended = [named[key] for key in tokens.values_list("pk", flat=True)]
    for why in {why_of(row) for row in ended}:
        own = [row.pk for row in ended if why_of(row) == why]
        connections.filter(pk__in=own).update(ended=why)
    AccessToken.objects.using(alias).note_ends([row.pk for row in ended], now)
    return ended
