"""Records changes of rights in Django's models; changes, ends and removes apps.

Once the request that made a change is answered, every process knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import models, router
from django.db.models import F, Q, QuerySet
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete
from django.utils import timezone

from mcp_app.auth.connections import connection_end, lock
from mcp_app.invalidation.changes import RIGHTS, record_change
from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models import AccessToken, Connection, EventSubscription, IssuedToken
from mcp_app.models.changes import ANY
from mcp_app.models.expiry import (
    PORTION,
    ExpiredRows,
    claim_rows,
    delete_rows,
    expired_rows,
)
from mcp_app.models.tokens import TOKEN_BATCH_SIZE, UsedAssertion
from mcp_app.models.transactions import in_atomic, own_transaction, persistently, slices

# Every login writes this column; it is no right.
_NO_RIGHT = frozenset({"last_login"})


def connect_signals() -> None:
    """Watch users, their groups and permissions; call it after models are loaded."""
    from django.contrib.auth.models import Group, Permission  # noqa: PLC0415

    user = get_user_model()
    # No sender is given: a proxy or a subclass of the model is a sender of its own.
    post_save.connect(_user_changed)
    post_delete.connect(_user_changed)
    for name in ("groups", "user_permissions"):
        if (relation := getattr(user, name, None)) is not None:
            m2m_changed.connect(_user_related, sender=relation.through)
    m2m_changed.connect(_all_changed, sender=Group.permissions.through)
    # Requirements name a group by its name, and a permission by its codename.
    post_save.connect(_requirement_renamed, sender=Group)
    post_save.connect(_requirement_renamed, sender=Permission)
    # This comes before the deletion: later nobody knows who was in the group.
    pre_delete.connect(_all_changed, sender=Group)
    pre_delete.connect(_all_changed, sender=Permission)
    post_save.connect(_token_changed, sender=AccessToken)
    post_delete.connect(_token_changed, sender=AccessToken)
    m2m_changed.connect(_all_changed, sender=AccessToken.servers.through)


def _user_changed(
    sender: type[models.Model],
    instance: models.Model,
    using: str,
    created: bool = False,
    raw: bool = False,
    update_fields: frozenset[str] | None = None,
    **_: object,
) -> None:
    harmless = update_fields is not None and update_fields <= _NO_RIGHT
    if issubclass(sender, get_user_model()) and not (created or raw or harmless):
        record_rights(str(instance.pk), using)


def _user_related(
    instance: models.Model,
    action: str,
    reverse: bool,
    pk_set: set[Any] | None,
    using: str,
    **_: object,
) -> None:
    """Record that a user's groups or permissions, or a group's users, changed."""
    if not _is_change_action(action) or pk_set == set():
        return
    # With `reverse` the instance is a group, and `pk_set` has the users.
    keys = pk_set if reverse else {instance.pk}
    # A group that is cleared does not say which users it had.
    for key in {ANY} if keys is None else keys:
        record_rights(str(key), using)


def _all_changed(
    using: str, action: str = "post_add", pk_set: set[Any] | None = None, **_: object
) -> None:
    if _is_change_action(action) and pk_set != set():
        record_rights(ANY, using)


def _requirement_renamed(using: str, created: bool, **_: object) -> None:
    # A new group or permission belongs to nobody yet.
    if not created:
        record_rights(ANY, using)


def _token_changed(
    instance: AccessToken,
    using: str,
    created: bool = False,
    update_fields: frozenset[str] | None = None,
    **_: object,
) -> None:
    # Nobody uses a new token yet.
    if not created and (update_fields is None or update_fields - AccessToken.PRIVATE):
        record_rights(str(instance.user_id), using)


def _is_change_action(action: str) -> bool:
    # Before a clear the affected rows are known, after it they are not.
    return action in ("post_add", "post_remove", "pre_clear")


def record_rights(ref: str, using: str) -> None:
    """Record changed rights of a user (`ref` is the key), or of all users (`ANY`)."""
    record_change(using, RIGHTS, ref)
    if in_atomic(using):
        hold_after_commit(using)


# -- app changes -----------------------------------------------------------------------
# Change what a connected app may do, and end several apps together.
#
# No app may do more than its program asked for.  Everything here blocks.  A row is
# locked before it is read and changed.  The change of its user's rights is recorded in
# the same transaction, so that every open stream hears of it.


class AppEnded(Exception):
    """The app has ended, so it cannot be changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The name, rights and latest end (`until`) of an app; `tags` are words."""

    name: str
    may: str
    tags: str
    until: datetime | None

    @classmethod
    def of_connection(cls, connection: Connection) -> Choice:
        """Return the choice that an app has now."""
        row = connection.token
        return cls(name=row.name, may=row.may, tags=row.tags, until=connection.until)


def change_app(connection: Connection, choose: Callable[[Choice], Choice]) -> Choice:
    """Call `choose` with the current choice; store and return its result.

    Raises `AppEnded`, `ValueError` for more than the program asked for,
    `ValidationError`, and what `choose` raises.  After an error, nothing is changed.
    """
    return persistently(partial(_apply_choice, connection, choose))


def _apply_choice(connection: Connection, choose: Callable[[Choice], Choice]) -> Choice:
    with own_transaction(router.db_for_write(AccessToken)):
        current, now = lock(connection), timezone.now()
        if current is None or current.token.has_ended(now):
            raise AppEnded
        before = Choice.of_connection(current)
        after = choose(before)
        if after != before:
            _store_choice(current, before, after, now)
    return after


def _store_choice(
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
        # Until its code is used, the app ends with the code.
        if connection.code_used:
            row.expires = connection_end(connection, after.until, now)
    row.save(update_fields=columns)


def end_connected_apps(
    apps: Iterable[AccessToken], why_of: Callable[[AccessToken], Connection.Ended]
) -> list[AccessToken]:
    """End apps together; return those that were not ended for good before.

    Every process refuses their keys once the transaction is committed.  The number of
    statements for that depends on the number of users, not of apps.
    """
    # In one order, so that two calls at once wait for each other without a deadlock.
    rows = sorted(apps, key=lambda row: row.pk)
    alias, now, ended = router.db_for_write(AccessToken), timezone.now(), []
    with own_transaction(alias):
        for batch in slices(rows, TOKEN_BATCH_SIZE):
            ended += _end_batch(alias, batch, why_of, now)
        for user in {row.user_id for row in ended}:
            record_rights(str(user), alias)
    return ended


def _end_batch(
    alias: str,
    apps: Sequence[AccessToken],
    why_of: Callable[[AccessToken], Connection.Ended],
    now: datetime,
) -> list[AccessToken]:
    by_key = {row.pk: row for row in apps}
    connections = Connection.objects.using(alias)
    # Lock the rows, as `lock` does, before anything is read.
    locked = connections.filter(pk__in=by_key).order_by("pk").select_for_update()
    rows, by_program = list(locked), Connection.Ended.CLIENT
    # If its program ended an app, a company could let it in again: end it for good.
    may_return = [row.pk for row in rows if row.issuer and row.ended == by_program]
    is_open = Q(revoked=None) | Q(pk__in=may_return)
    tokens = AccessToken.objects.using(alias).filter(pk__in=[row.pk for row in rows])
    tokens = tokens.filter(is_open).order_by("pk").select_for_update()
    ended = [by_key[key] for key in tokens.values_list("pk", flat=True)]
    for why in {why_of(row) for row in ended}:
        keys = [row.pk for row in ended if why_of(row) == why]
        connections.filter(pk__in=keys).update(ended=why)
    AccessToken.objects.using(alias).note_ends([row.pk for row in ended], now)
    EventSubscription.objects.end_of_tokens(alias, ended)
    return ended


# -- expiry ----------------------------------------------------------------------------
# Expired keys of connected apps, and apps that have ended.

KEY_RETENTION: Final = timedelta(hours=1)
"""How long a key is kept after its end, and an app after its unused code ends."""
APP_RETENTION: Final = timedelta(days=90)
"""How long an ended app is kept, so that its owner can read why it ended."""


def expired_apps() -> list[ExpiredRows]:
    """Return the expired rows, table by table."""
    now = timezone.now()
    keys = IssuedToken.objects.filter(expires__lt=now - KEY_RETENTION)
    apps = Connection.objects.order_by("pk")
    unused = apps.filter(code_used=False, code_ends__lt=now - KEY_RETENTION)
    since = now - APP_RETENTION
    over = Q(token__revoked__lt=since) | Q(token__expires__lt=since)
    # Keep what people ended or narrowed: the company's next assertion must see it.
    people = [Connection.Ended.PERSON, Connection.Ended.STAFF]
    narrowed = ~Q(token__may=F("may_ask")) | ~Q(token__tags="")
    people_decided = narrowed | Q(ended__in=people) | Q(until__isnull=False)
    ended = apps.filter(over, code_used=True).exclude(people_decided & ~Q(issuer=""))
    return [
        expired_rows("keys of connected apps", keys.order_by("expires")),
        _expired_app_rows("sign-ins that were not finished", unused),
        _expired_app_rows("connected apps that have ended", ended),
    ]


def expired_assertions() -> ExpiredRows:
    """Return the used assertions that have expired, even if clocks differ."""
    rows = UsedAssertion.objects.filter(expires__lt=timezone.now() - KEY_RETENTION)
    return expired_rows("used assertions of programs", rows.order_by("expires"))


def _expired_app_rows(what: str, rows: QuerySet[Connection]) -> ExpiredRows:
    return ExpiredRows(what, rows.count, partial(_remove_apps, rows))


def _remove_apps(rows: QuerySet[Connection]) -> int | None:
    using = router.db_for_write(AccessToken)
    with own_transaction(using):
        claimed = claim_rows(rows.using(using)).values_list("pk", flat=True)
        if keys := list(claimed[:PORTION]):
            delete_rows(using, IssuedToken, keys, "token_id")
            delete_rows(using, AccessToken.servers.through, keys, "accesstoken_id")
            delete_rows(using, Connection, keys)
            delete_rows(using, AccessToken, keys)
    return len(keys) or None
