"""Expired keys of connected apps, and apps that have ended."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from django.db import router
from django.db.models import Q, QuerySet
from django.utils import timezone

from mcp_app.models import AccessToken, Connection, IssuedToken
from mcp_app.models.expiry import PORTION, ExpiredRows, claim, delete_rows, expired_rows
from mcp_app.models.transactions import own_transaction

KEYS_KEPT: Final = timedelta(hours=1)
"""How long a key is kept after its end, and an app after that of its unused code."""
APPS_KEPT: Final = timedelta(days=90)
"""How long their owners can read why apps have ended."""


def expired_apps() -> list[ExpiredRows]:
    """Return the expired rows, table by table."""
    now = timezone.now()
    keys = IssuedToken.objects.filter(expires__lt=now - KEYS_KEPT)
    apps = Connection.objects.order_by("pk")
    unused = apps.filter(code_used=False, code_ends__lt=now - KEYS_KEPT)
    since = now - APPS_KEPT
    over = Q(token__revoked__lt=since) | Q(token__expires__lt=since)
    return [
        expired_rows("keys of connected apps", keys.order_by("expires")),
        _apps("sign-ins that were not finished", unused),
        _apps("connected apps that have ended", apps.filter(over, code_used=True)),
    ]


def _apps(what: str, rows: QuerySet[Connection]) -> ExpiredRows:
    """Return apps, with which all goes that belongs to them."""
    return ExpiredRows(what, rows.count, partial(_remove, rows))


def _remove(rows: QuerySet[Connection]) -> int | None:
    using = router.db_for_write(AccessToken)
    servers = AccessToken.servers.through
    with own_transaction(using):
        keys = list(claim(rows.using(using)).values_list("pk", flat=True)[:PORTION])
        if keys:
            delete_rows(using, IssuedToken, keys, "token_id")
            delete_rows(using, servers, keys, "accesstoken_id")
            delete_rows(using, Connection, keys)
            delete_rows(using, AccessToken, keys)
    return len(keys) or None
