"""Connected apps at the endpoint: what their keys open, and when no more."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

import pytest
from django.db import connection as database
from django.utils import timezone

from mcp_app.auth import connections
from mcp_app.auth.connections import PageUsed
from mcp_app.auth.token_cache import token_cache
from mcp_app.models import (
    AccessToken,
    Change,
    Connection,
    EventSubscription,
    IssuedToken,
    Server,
)
from mcp_app.pools.database import lookups, reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.oauth.requests import CodeGrant, OAuthError, RefreshGrant
from tests.asgi_client import Client, outcome
from tests.auth.apps import Program, end
from tests.auth.conftest import Commit
from tests.behaviours import Stage
from tests.oauth.program import ORIGIN, REDIRECT, VERIFIER, WAYS
from tests.published import published
from tests.statements import counted
from tests.wire.middleware import WireCheck

pytestmark = pytest.mark.databases

PATH: Final = "/mcp/signed"
SERVER: Final = {"slug": "signed", "access": "oauth token"}
NEWEST: Final = "2026-07-28"


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"AUTHENTICATION": WAYS, "PUBLIC_URL": ORIGIN, "HOSTS": ["*"]}


@pytest.fixture
def program(application: WireCheck, server: Server, user: Any) -> Program:
    token_cache.forget_all()
    return Program(server, user, application=application)


def bearing(program: Program, token: str, path: str = PATH) -> Client:
    headers = {"authorization": f"Bearer {token}"}
    return Client(program.application, NEWEST, path=path, headers=headers)


def refusal(error: pytest.ExceptionInfo[OAuthError]) -> str:
    return error.value.error


async def test_a_key_opens_its_server_alone(program: Program) -> None:
    other = await writer.run(published, Server(slug="other", access="oauth"))
    await writer.run(program.sign_in)
    client = bearing(program, program.access)
    found = await client.call("drill_whoami")
    assert found.result["structuredContent"]["user"] == "ana"
    stranger = bearing(program, program.access, "/mcp/other")
    refused = await stranger.request("tools/list")
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == (
        'Bearer realm="mcp", resource_metadata="https://shop.example.com/.well-known/'
        'oauth-protected-resource/mcp/other", scope="mcp:read mcp:change",'
        ' error="invalid_token",'
        ' error_description="This access token is not valid for this server."'
    )
    await writer.run(other.delete)


async def test_who_brings_nothing_is_told_where_to_sign_in(program: Program) -> None:
    """What stands at that address is about the server that was asked."""
    found = [
        await Client(program.application, version, path=PATH).request("tools/list")
        for version in ("2025-11-25", NEWEST)
    ]
    assert [each.status for each in found] == [401, 401]
    challenges = {each.headers["www-authenticate"] for each in found}
    metadata = f"{ORIGIN}/.well-known/oauth-protected-resource{PATH}"
    assert challenges == {
        f'Bearer realm="mcp", resource_metadata="{metadata}",'
        ' scope="mcp:read mcp:change"'
    }
    visit = Client(program.application, path=metadata.removeprefix(ORIGIN)).visit("GET")
    said = json.loads(await visit.body())
    assert said["resource"] == f"{ORIGIN}{PATH}"
    assert said["authorization_servers"] == [ORIGIN]
    assert " ".join(said["scopes_supported"]) == "mcp:read mcp:change"


async def test_nothing_else_of_an_app_opens_anything(program: Program) -> None:
    code = await writer.run(program.allowed)
    await writer.run(program.exchange, code)
    texts = [code, program.refresh_token, program.client_id, program.access[:-1]]
    for text in [*texts, "mcp_at_" + "x" * 43]:
        found = await bearing(program, text).request("tools/list")
        assert found.status == 401, text


async def test_the_end_of_a_key_and_of_its_app(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.run(program.sign_in)
    client, began = bearing(program, program.access), timezone.now()
    for hours, status in ((7, 200), (8, 401)):
        later = began + timedelta(hours=hours, seconds=1)
        monkeypatch.setattr(timezone, "now", lambda later=later: later)
        assert (await client.request("tools/list")).status == status
    await writer.run(program.refresh)
    client = bearing(program, program.access)
    assert (await client.request("tools/list")).status == 200


async def test_its_call_asks_no_more_than_that_of_a_token(
    program: Program, process: Process
) -> None:
    """Not the first one; the next ones take none but, now and then, the check."""
    await writer.run(program.sign_in)
    # Apps are good at one server: so is the token.
    columns = {"user": program.user, "may": "change", "servers": [program.server]}
    make = partial(AccessToken.objects.make, name="laptop", **columns)
    _, token = await writer.run(make)
    await process.gate.wait_for_check()
    counts = []
    for bearer in (token, program.access):
        client = bearing(program, bearer)
        for _ in range(2):
            # Checks for changes come by themselves.
            async with counted([reader, lookups]) as statements:
                call = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
                assert (await client.request("tools/call", call)).status == 200
            counts.append(len(statements))
    by_token, by_app = counts[:2], counts[2:]
    assert by_app[0] <= by_token[0]
    assert max(by_token[1], by_app[1]) <= 1


async def test_a_call_outlives_the_key_that_began_it(
    program: Program,
    stage: Stage,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await writer.run(program.sign_in)
    client, began = bearing(program, program.access), timezone.now()
    call = client.begin("tools/call", {"name": "waits", "arguments": {}})
    await stage.begun()
    later = began + timedelta(hours=8, seconds=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    await process.gate.wait_for_check()
    assert (await client.request("tools/list")).status == 401
    stage.released.set()
    assert (await outcome(call)).text == "waited"


async def test_an_app_that_ends_takes_what_is_open_along(
    program: Program, stage: Stage, commit: Commit
) -> None:
    await writer.run(program.sign_in)
    client = bearing(program, program.access)
    call = client.begin("tools/call", {"name": "waits", "arguments": {}})
    await stage.begun()
    row = await writer.run(lambda: program.row)
    await commit(end, row.token)
    await call.done()
    found = await client.request("tools/list")
    assert found.error["message"] == "This connection has ended. Sign in again."


async def test_what_a_person_did_not_allow_is_not_there(
    program: Program, commit: Commit
) -> None:
    await writer.run(lambda: program.sign_in(may="read"))
    client = bearing(program, program.access)
    listed = await client.request("tools/list")
    names = {each["name"] for each in listed.result["tools"]}
    assert names
    call = {"name": "drill_count", "arguments": {"n": 1, "delay_ms": 0}}
    found = await client.request("tools/call", call)
    metadata = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp/signed"
    assert found.status == 403
    assert f'resource_metadata="{metadata}"' in found.headers["www-authenticate"]
    row = await writer.run(lambda: program.row.token)
    row.may = "change"
    await commit(row.save)
    listed = await client.request("tools/list")
    assert names < {each["name"] for each in listed.result["tools"]}


# -- codes and refresh tokens ----------------------------------------------------------


async def test_a_new_app_is_nobodys_yet(program: Program) -> None:
    """Nobody's rights changed: no process reads them again."""
    before = await writer.run(Change.objects.filter(kind="rights").count)
    await writer.run(program.sign_in)
    assert await writer.run(Change.objects.filter(kind="rights").count) == before


async def test_a_page_makes_one_code(program: Program) -> None:
    page = uuid4()
    first = await writer.run(program.allowed, page)
    assert await writer.run(program.allowed, page) == first
    await writer.run(program.exchange, first)
    with pytest.raises(PageUsed):
        await writer.run(program.allowed, page)


async def test_an_old_code(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    code = await writer.run(program.allowed)
    later = timezone.now() + timedelta(seconds=61)
    monkeypatch.setattr(timezone, "now", lambda: later)
    with pytest.raises(OAuthError) as error:
        await writer.run(program.exchange, code)
    assert refusal(error) == "invalid_grant"


async def test_whoever_is_another_client_gets_and_changes_nothing(
    program: Program,
) -> None:
    code = await writer.run(program.allowed)
    own, program.client_id = program.client_id, "https://evil.example/client.json"
    with pytest.raises(OAuthError) as error:
        await writer.run(program.exchange, code)
    assert refusal(error) == "invalid_grant"
    await writer.run(connections.revoke_token, program.client_id, code)
    program.client_id = own
    await writer.run(program.exchange, code)
    with pytest.raises(OAuthError) as error:
        await writer.run(lambda: program.exchange("mcp_ac_" + "x" * 43))
    assert refusal(error) == "invalid_grant"
    program.client_id = "a client of nobody"
    with pytest.raises(OAuthError) as error:
        await writer.run(lambda: program.exchange("mcp_ac_" + "x" * 43))
    assert refusal(error) == "invalid_client"


async def test_an_answer_that_was_lost_can_be_asked_for_again(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long after the overlap, too, but only until the app was used."""
    await writer.run(program.sign_in)
    old = program.refresh_token
    await writer.run(program.refresh)
    current = program.refresh_token
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    await writer.run(program.refresh, old)
    assert program.refresh_token == current
    await bearing(program, program.access).request("tools/list")
    with pytest.raises(OAuthError):
        await writer.run(program.refresh, old)
    row = await writer.run(lambda: Connection.objects.select_related("token").get())
    assert (row.ended, row.token.revoked is None) == ("refresh", False)


async def test_a_token_of_two_steps_ago_ends_the_app(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its program had the answer, with which it refreshed: somebody else asks."""
    old = (await writer.run(program.sign_in)).refresh_token
    for _ in range(2):
        await writer.run(program.refresh)
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    with pytest.raises(OAuthError):
        await writer.run(program.refresh, old)
    assert (await writer.run(Connection.objects.get)).ended == "refresh"


async def test_a_token_that_nobody_was_given_ends_the_app(program: Program) -> None:
    """Who knows its name has seen it: somebody else may have it, too."""
    await writer.run(program.sign_in)
    with pytest.raises(OAuthError):
        await writer.run(program.refresh, program.refresh_token[:-2] + "xx")
    assert (await writer.run(Connection.objects.get)).ended == "refresh"


async def test_a_new_key_with_its_old_one(program: Program, settings: Any) -> None:
    settings.MCP = {**settings.MCP, "STATE_KEYS": ["a" * 32]}
    program.client_id = "https://program.example.com/client.json"
    await writer.run(program.sign_in)
    old = program.refresh_token
    await writer.run(program.refresh)
    current = program.refresh_token
    settings.MCP = {**settings.MCP, "STATE_KEYS": ["b" * 32, "a" * 32]}
    await writer.run(program.refresh, old)
    assert program.refresh_token == current
    await writer.run(program.refresh)
    assert program.refresh_token != current


async def test_when_an_app_ends(program: Program) -> None:
    await writer.run(program.sign_in)
    row = await writer.run(lambda: program.row)
    assert row.refreshed is not None
    assert row.token.expires == row.refreshed + timedelta(days=30)
    await writer.run(end, row.token)
    soon = timezone.now() + timedelta(days=2)
    await writer.run(lambda: program.sign_in(until=soon))
    assert (await writer.run(lambda: program.row.token.expires)) == soon


async def test_many_keys(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    await writer.run(program.sign_in)
    began = timezone.now()
    for number in range(1, 40):
        at = began + timedelta(minutes=number)
        monkeypatch.setattr(timezone, "now", lambda at=at: at)
        await writer.run(program.refresh)
    assert await writer.run(IssuedToken.objects.count) == connections.MAX_KEYS

    def often() -> None:
        for _ in range(50):
            program.refresh()

    with pytest.raises(OAuthError) as error:
        await writer.run(often)
    assert (error.value.status, refusal(error)) == (429, "slow_down")
    # What was refused left no trace.
    monkeypatch.setattr(timezone, "now", lambda: began + timedelta(minutes=50))
    await writer.run(program.refresh)


@pytest.mark.parametrize("what", ["exchange", "refresh"])
async def test_many_at_once(program: Program, what: str) -> None:
    """One code gives one answer, and ends; one refresh token has one successor."""
    code = await writer.run(program.allowed)
    if what == "refresh":
        await writer.run(program.exchange, code)
    old = program.refresh_token

    def one(_: int) -> str:
        try:
            if what == "exchange":
                grant = CodeGrant(
                    code=code, redirect_uri=REDIRECT, verifier=VERIFIER, resource=""
                )
                answer = connections.exchange_code(program.client_id, grant, None)
            else:
                again = RefreshGrant(refresh_token=old, resource="")
                answer = connections.refresh_tokens(program.client_id, again, None)
        except OAuthError as error:
            return error.error
        finally:
            database.close()
        return str(answer["refresh_token"])

    def together() -> list[str]:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(one, range(8)))

    answers = await writer.run(together)
    row = await writer.run(lambda: Connection.objects.select_related("token").get())
    if what == "exchange":
        assert answers.count("invalid_grant") == 7
        assert row.ended == "code"
    else:
        assert len(set(answers)) == 1
        assert row.token.revoked is None
    own = AccessToken.objects.filter(user=program.user)
    assert await writer.run(own.count) == 1


@pytest.mark.parametrize("by_program", [True, False])
async def test_what_an_app_subscribes_to_ends_with_it(
    program: Program, by_program: bool
) -> None:
    await writer.run(program.sign_in)
    token = (await writer.run(lambda: program.row)).token
    columns = {"position": 0, "expires_ms": 2**50, "due_ms": 0, "created_ms": 0}
    rows = EventSubscription.objects
    for key in (token.principal_key, f"{token.principal_key}2"):
        await rows.acreate(public_id=key, principal=key, **columns)
    if by_program:
        revoke, key = connections.revoke_token, program.refresh_token
        await writer.run(revoke, program.client_id, key)
    else:
        await writer.run(end, token)
    left = [each.principal async for each in rows.all()]
    await rows.all().adelete()
    assert left == [f"{token.principal_key}2"]
