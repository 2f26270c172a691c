"""Connected apps as rows, without a program that signs in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from mcp_app.auth import connections, rights
from mcp_app.auth.connections import Client, Grant
from mcp_app.models import AccessToken, Connection, Server
from mcp_app.protocol.oauth.addresses import redirect_host
from tests.published import published

REDIRECT = "https://claude.ai/api/callback"


def support() -> Server:
    """A server that programs sign in to, or come to with a token."""
    found = Server.objects.filter(slug="support").first()
    if found is not None:
        return found
    return published(Server(slug="support", title="Support desk", access="oauth token"))


def app(
    user: User,
    *,
    host: str = "claude.ai",
    redirect: str = REDIRECT,
    may_ask: str = "change",
    may: str = "change",
    tags: str = "",
    until: datetime | None = None,
    is_used: bool = True,
    **columns: Any,
) -> AccessToken:
    client = Client(
        client_id=f"https://{host}/client" if host else "mcp_cl_x",
        name="Claude",
        host=host,
        redirect_uri=redirect,
        redirect_host=redirect_host(redirect),
        refreshes=True,
    )
    grant = Grant(
        user=user,
        server=support(),
        client=client,
        challenge="c" * 43,
        may_ask=may_ask,
        may=may,
        tags=tags,
        until=until,
    )
    page = uuid4()
    connections.store_grant(grant, page)
    row = AccessToken.objects.get(made_with=page)
    if is_used:
        now = timezone.now()
        Connection.objects.filter(pk=row.pk).update(code_used=True, refreshed=now)
        AccessToken.objects.move_end(row.pk, now + timedelta(days=30))
    if columns:
        AccessToken.objects.filter(pk=row.pk).update(**columns)
    return AccessToken.objects.get(pk=row.pk)


def end(row: AccessToken, why: str) -> None:
    rights.end_connected_apps([row], lambda _: Connection.Ended(why))


def many_apps(user: User, count: int) -> None:
    rows = AccessToken.objects.bulk_create(
        AccessToken(
            user=user,
            name=f"app {number}",
            prefix=f"app_{number:08}",
            digest=f"{number:064}",
            family=f"{number:032}",
            everywhere=False,
        )
        for number in range(count)
    )
    Connection.objects.bulk_create(
        Connection(
            token=row,
            client_id="mcp_cl_another",
            redirect_uri="https://claude.ai/cb",
            code=row.digest,
            code_ends=timezone.now(),
            challenge="c" * 43,
            may_ask="read",
        )
        for row in rows
    )
