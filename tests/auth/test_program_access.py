"""A plain token, one that is sent as a secret, and a program's key may the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from mcp_app.auth import connections
from mcp_app.models import AccessToken
from mcp_app.pools.database import writer
from mcp_app.protocol.oauth.requests import ClientCredentials
from tests.auth.conftest import Commit
from tests.auth.test_token_cache import SERVER, Site, site
from tests.oauth.program import ORIGIN, WAYS
from tests.oauth.program_rows import assertion, program_row

__all__ = ["SERVER", "site"]

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("each_way")]


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": WAYS}


def bearers(slug: str, columns: dict[str, Any]) -> list[tuple[AccessToken, str]]:
    row, plain = AccessToken.objects.make(name="a job", **columns)
    machine = ClientCredentials(client_id=row.prefix, secret=plain)
    secret = connections.token_of_machine(machine, slug)["access_token"]
    program = program_row(**columns)
    signed = assertion(program.prefix)
    proof = ClientCredentials(client_id="", secret="", assertion=signed)
    key = connections.token_of_program(proof, slug, ORIGIN)["access_token"]
    return [(row, plain), (row, str(secret)), (program, str(key))]


@pytest.mark.parametrize(
    ("columns", "changes", "status"),
    [
        ({}, {}, 200),
        ({"may": "change"}, {}, 200),
        ({"may": "change", "tags": "nothing-has-it"}, {}, 200),
        ({"may": "change", "tools": "drill_count"}, {}, 200),
        ({"networks": "192.0.2.0/24"}, {}, 401),
        ({"networks": "127.0.0.1"}, {}, 200),
        ({}, {"everywhere": False}, 401),
        ({}, {"revoked": timezone.now()}, 401),
        ({}, {"expires": timezone.now()}, 401),
    ],
)
async def test_tokens_and_keys_are_refused_alike(
    site: Site,
    commit: Commit,
    columns: dict[str, Any],
    changes: dict[str, Any],
    status: int,
) -> None:
    shown = await writer.run(bearers, "by-token", {**columns, "user": site.user})
    clients = [site.bearing(bearer) for _, bearer in shown]
    for client in clients:
        # It is known before it changes.
        await client.request("tools/list")
    rows = AccessToken.objects.filter(pk__in=[row.pk for row, _ in shown])
    await commit(partial(rows.update, **{"may": shown[0][0].may, **changes}))
    answers = []
    for client in clients:
        listed = await client.request("tools/list")
        called = await client.call("drill_count", n=1, delay_ms=0)
        answers.append((listed.status, listed.messages, called.messages))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == status
