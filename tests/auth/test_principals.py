"""Who is asking: the callables of the settings, and what fails closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from mcp_app import Principal
from mcp_app.auth import principals
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationRequest
from mcp_app.interface.server import ServerDefinition
from mcp_app.protocol.errors import RequestRefused, Unavailable
from mcp_app.protocol.headers import Headers
from tests.auth import callables

METHODS: Final = {
    name: f"tests.auth.callables.{name}"
    for name in (
        *("by_name", "by_badge", "by_lost_badge", "by_object", "outage"),
        *("async_outage", "wrong", "broken", "slowly", "claiming", "elsewhere"),
        *("async_elsewhere", "said_away", "hanging"),
    )
}

pytestmark = pytest.mark.usefixtures("served_rows", "methods")


@pytest.fixture
def methods(settings: Any) -> None:
    token = {"token": "mcp_app.authentication.access_token"}
    settings.MCP = {"AUTHENTICATION": {**METHODS, **token}}
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
    return await principals.find_principal(server, request(**headers))


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
    with pytest.raises(RequestRefused):
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


async def refusal(access: tuple[str, ...], **headers: str) -> RequestRefused:
    with pytest.raises(RequestRefused) as raised:
        await asking(access, **headers)
    assert raised.value.http_status == 401
    return raised.value


def challenge(refused: RequestRefused) -> str:
    ((name, value),) = refused.headers.items()
    assert name == "WWW-Authenticate"
    return value


@pytest.mark.parametrize("access", [(), ("by_name",), ("by_name", "by_badge")])
async def test_nobody_knows_who_it_is(access: tuple[str, ...]) -> None:
    refused = await refusal(access)
    assert refused.message == "Authentication is required."
    # RFC 6750, section 3: no error where nothing was shown.
    assert challenge(refused) == 'Bearer realm="mcp"'


@pytest.mark.parametrize(
    ("public_url", "access"), [("https://a.example", "token"), (None, "outside")]
)
async def test_no_challenge_leads_to_metadata_that_are_not_there(
    settings: Any, public_url: str | None, access: str
) -> None:
    """Those of a server without an issuer, or of a site without a public address."""
    outside = {"issuer": "https://id.example", "claim": "sub", "field": "username"}
    outside["path"] = "mcp_app.authentication.issuer"
    ways = {**settings.MCP["AUTHENTICATION"], "outside": outside}
    settings.MCP = {"AUTHENTICATION": ways, "PUBLIC_URL": public_url}
    assert challenge(await refusal((access,))) == 'Bearer realm="mcp"'


@pytest.mark.parametrize("access", [("token",), ("by_name", "token")])
async def test_who_brings_nothing_is_told_what_to_send(access: tuple[str, ...]) -> None:
    refused = await refusal(access)
    assert refused.message == (
        "Authentication is required. Send an access token:"
        " “Authorization: Bearer mcp_…”."
    )


@pytest.mark.parametrize(
    ("header", "mistake"),
    [
        ("mcp_abc", "lacks “Bearer” before the token"),
        ('"Bearer mcp_abc"', "has quotation marks"),
        ("Bearer 'mcp_abc'", "has quotation marks"),
        ("Bearer Bearer mcp_abc", "has “Bearer” twice"),
        ("Bearer YOUR-TOKEN", "has something after “Bearer” that is no token of this"),
        ("Basic bWFyaWE6eA==", "has “Basic”, for a name and a password"),
        ("Token mcp_abc", "does not begin with “Bearer”"),
    ],
)
async def test_a_header_that_is_wrong_is_told_how(header: str, mistake: str) -> None:
    refused = await refusal(("token",), authorization=header)
    assert f" Your header {mistake}" in refused.message


async def test_no_later_way_is_asked_after_wrong_credentials() -> None:
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
async def test_texts_of_bodies_only(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    async def refuse(_: AuthenticationRequest) -> Principal | None:
        raise AuthenticationFailed(said)

    monkeypatch.setattr(callables, "by_name", refuse)
    refused = await refusal(("by_name",))
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
    assert "'staff' lets nobody in, because MCP" in record.message
    assert not principals.lets_anyone_in(ServerDefinition(slug="staff", access=access))


@pytest.mark.parametrize(
    ("access", "is_open"),
    [
        (("public",), True),
        (("by_badge", "token"), True),
        ((), False),
        (("by_badge", "no_such_path"), False),
    ],
)
def test_a_way_in(access: tuple[str, ...], is_open: bool, settings: Any) -> None:
    there = {**settings.MCP["AUTHENTICATION"], "no_such_path": "shop.none"}
    settings.MCP = {"AUTHENTICATION": there}
    server = ServerDefinition(slug="staff", access=access)
    assert principals.lets_anyone_in(server) is is_open


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
    with pytest.raises(RequestRefused):
        await asking(("by_name",), x_name="nobody")
    assert found.kind == "badge"
    callables.HOLD["go"].set()
    assert {each.kind for each in await asyncio.gather(*slow)} == {"slow"}


# -- kinds of ours ------------------------------------------------------------------


@pytest.mark.parametrize(
    "claim",
    [
        *("access-token/1/family", "session/1/session", "stdio/1/stdio"),
        *("drf/1/site.Class", "anonymous//"),
    ],
)
async def test_a_callable_cannot_claim_what_is_ours(claim: str) -> None:
    with pytest.raises(ValueError, match="which is reserved"):
        await asking(("claiming", "by_badge"), x_claim=claim, x_badge="7")


async def test_a_callable_has_all_other_kinds() -> None:
    found = await asking(("claiming",), x_claim="partner/1/a program")
    assert found.key.split("\x1f") == ["partner", "1", "a program"]


@pytest.mark.parametrize("parts", [("partner\x1f1", "2"), ("partner", "1\x1f2")])
def test_no_two_principals_have_one_key(parts: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="U\\+001F"):
        Principal(kind=parts[0], user_id=parts[1])


# -- T33: what verifies is away --------------------------------------------------------


async def unavailable(method: str, **headers: str) -> Unavailable:
    with pytest.raises(Unavailable) as raised:
        await asking((method, "by_badge"), x_badge="7", **headers)
    assert raised.value.http_status == 503
    assert "WWW-Authenticate" not in raised.value.headers
    assert "secret" not in raised.value.message
    return raised.value


@pytest.fixture
async def verifier() -> AsyncIterator[asyncio.Server]:
    """A server that says to all who connect that they are ana."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nana")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    callables.PLACE["port"] = server.sockets[0].getsockname()[1]
    yield server
    server.close()


@pytest.mark.parametrize("method", ["elsewhere", "async_elsewhere"])
async def test_t33_a_verifier_stops(verifier: asyncio.Server, method: str) -> None:
    assert (await asking((method,))).kind == "elsewhere"
    verifier.close()
    await verifier.wait_closed()
    refused = await unavailable(method)
    assert int(refused.headers["Retry-After"]) > 0


async def test_t33_a_callable_says_so(caplog: pytest.LogCaptureFixture) -> None:
    principals._reported_at = float("-inf")
    with caplog.at_level(logging.WARNING, "mcp_app.auth"):
        refused = await unavailable("said_away")
        await unavailable("said_away")
    assert refused.headers["Retry-After"] == "77"
    # Once in a while, and what the site wrote into its error is the site's.
    (record,) = caplog.records
    assert "AuthenticationUnavailable" in record.message
    assert "secret" not in record.message


async def test_t33_a_callable_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(principals, "HANGS_S", 0.01)
    await unavailable("hanging")
