"""Who is asking: the callables of the settings, and what fails closed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest

from mcp_app import Principal
from mcp_app.auth import principals
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationRequest
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.errors import Refused, Unavailable
from mcp_app.protocol.headers import Headers
from tests.auth import callables

METHODS: Final = {
    name: f"tests.auth.callables.{name}"
    for name in (
        *("by_name", "by_badge", "by_lost_badge", "by_object", "outage"),
        *("async_outage", "wrong", "broken", "slowly"),
    )
}

pytestmark = pytest.mark.usefixtures("served_rows", "methods")


@pytest.fixture
def methods(settings: Any) -> None:
    settings.MCP = {"AUTHENTICATION": METHODS}
    principals._tell_closed.cache_clear()
    callables.requests.clear()
    callables.threads.clear()


def request(**headers: str) -> AuthenticationRequest:
    raw = [
        (name.replace("_", "-").encode(), value.encode())
        for name, value in headers.items()
    ]
    return AuthenticationRequest(
        headers=Headers(raw), host="shop.example.org", path="/mcp/staff", server="staff"
    )


async def asking(access: tuple[str, ...], **headers: str) -> Principal:
    server = ServerDefinition(slug="staff", access=access)
    return await principals.principal(server, request(**headers))


@pytest.mark.covers("S-AUTH-002")
async def test_a_public_server_asks_nobody() -> None:
    found = await asking(("public",), x_badge="7")
    assert found is Principal.ANONYMOUS
    assert found.anonymous
    assert callables.requests == []


@pytest.mark.parametrize("method", ["by_badge", "by_lost_badge", "by_object"])
async def test_async_callables_of_every_kind(method: str) -> None:
    found = await asking((method,), x_badge="7")
    assert (found.kind, found.user_name, found.anonymous) == ("badge", "7", False)


async def test_a_sync_callable_runs_in_a_thread_and_sees_the_request() -> None:
    with pytest.raises(Refused):
        await asking(("by_name",))
    (seen,) = callables.requests
    assert (seen.host, seen.path, seen.server, seen.method) == (
        *("shop.example.org", "/mcp/staff", "staff"),
        "POST",
    )
    assert callables.threads == ["mcp-authentication"]


async def test_none_passes_on_to_the_next() -> None:
    found = await asking(("by_name", "by_badge"), x_badge="7")
    assert found.kind == "badge"
    assert len(callables.requests) == 1


async def test_the_first_who_knows_decides() -> None:
    found = await asking(("by_badge", "by_name"), x_badge="7", x_name="nobody")
    assert found.kind == "badge"
    assert callables.requests == []


async def refusal(access: tuple[str, ...], **headers: str) -> Refused:
    with pytest.raises(Refused) as raised:
        await asking(access, **headers)
    assert raised.value.http_status == 401
    return raised.value


def challenge(refused: Refused) -> str:
    ((name, value),) = refused.headers.items()
    assert name == "WWW-Authenticate"
    return value


@pytest.mark.parametrize("access", [(), ("by_name",), ("by_name", "by_badge")])
async def test_nobody_knows_who_it_is(access: tuple[str, ...]) -> None:
    refused = await refusal(access)
    assert refused.message == "Authentication is needed."
    # RFC 6750, section 3: no error where nothing was shown.
    assert challenge(refused) == 'Bearer realm="mcp"'


async def test_wrong_credentials_end_the_matter() -> None:
    """The next method is not asked, which might know the request for another's."""
    refused = await refusal(("by_name", "by_badge"), x_name="nobody", x_badge="7")
    assert refused.message == "There is no such user."
    assert challenge(refused) == (
        'Bearer realm="mcp", error="invalid_token",'
        ' error_description="There is no such user."'
    )
    refused = await refusal(("by_badge", "by_name"), x_badge="lost")
    assert refused.message == "Authentication failed."


@pytest.mark.parametrize("said", ['a "b"', "a\\b", "é", "a\nb"])
async def test_what_a_challenge_cannot_say_is_said_in_the_body(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    async def refuse(_: AuthenticationRequest) -> Principal | None:
        raise AuthenticationFailed(said)

    monkeypatch.setattr(callables, "by_name", refuse)
    principals._imported.cache_clear()
    refused = await refusal(("by_name",))
    principals._imported.cache_clear()
    assert refused.message == said
    assert challenge(refused) == 'Bearer realm="mcp", error="invalid_token"'


@pytest.mark.parametrize(
    "access",
    [
        ("by_badge", "unheard_of"),
        ("unheard_of", "by_badge"),
        ("public", "by_badge"),
        ("by_badge", "public"),
    ],
)
async def test_an_unknown_name_closes_the_server(
    access: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "mcp_app.auth"):
        await refusal(access, x_badge="7")
        await refusal(access, x_badge="7")
    (record,) = caplog.records
    assert "'staff' is closed: the settings have no authentication" in record.message


@pytest.mark.parametrize("method", ["outage", "async_outage"])
async def test_an_outage_is_no_refusal(method: str) -> None:
    with pytest.raises(Unavailable) as raised:
        await asking((method, "by_badge"), x_badge="7")
    assert raised.value.http_status == 503
    assert "Retry-After" in raised.value.headers


async def test_what_is_no_principal_lets_nobody_in() -> None:
    with pytest.raises(TypeError, match="returned 'admin': it must return a Principal"):
        await asking(("wrong",))


async def test_an_exception_of_a_callable_lets_nobody_in() -> None:
    with pytest.raises(LookupError):
        await asking(("broken", "by_badge"), x_badge="7")


async def test_slow_authentication_keeps_nobody_else() -> None:
    for each in callables.HOLD.values():
        each.clear()
    slow = [asyncio.ensure_future(asking(("slowly",))) for _ in range(2)]
    await asyncio.to_thread(callables.HOLD["entered"].wait, 5)
    found = await asking(("by_badge",), x_badge="7")
    with pytest.raises(Refused):
        await asking(("by_name",), x_name="nobody")
    assert found.kind == "badge"
    callables.HOLD["go"].set()
    assert {each.kind for each in await asyncio.gather(*slow)} == {"slow"}
