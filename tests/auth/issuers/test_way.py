"""Whom tokens of an external issuer let in on the wire, how far, and until when."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest
from pytest_django import Settings

from mcp_app.auth import issuer_tokens
from mcp_app.auth.authenticators import authenticator
from mcp_app.auth.caches import authentication_cache
from mcp_app.auth.issuer_keys import key_ends
from mcp_app.auth.issuer_tokens import LEEWAY_S, scopes_of
from mcp_app.auth.principals import find_principal
from mcp_app.auth.token_cache import token_cache
from mcp_app.conf import BY_TOKEN
from mcp_app.interface.principal import AuthenticationRequest, Principal, Scope
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import AccessToken, Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.headers import Headers
from tests.asgi_client import Client, Outcome, Visit
from tests.auth.conftest import Commit
from tests.auth.issuers.loopback_issuer import AUDIENCE, LoopbackIssuer, loopback_issuer
from tests.auth.issuers.test_tokens import signed_with_the_public_key, unsigned
from tests.published import published
from tests.wire.middleware import WireCheck

BY: Final = "/mcp/by-issuer"
SITE: Final = "https://shop.example.com"
METADATA: Final = f"{SITE}/.well-known/oauth-protected-resource{BY}"

pytestmark = pytest.mark.usefixtures("user")


@pytest.fixture(scope="module")
def staff() -> Iterator[LoopbackIssuer]:
    """The issuer of a module; tests that change it make one of their own."""
    with loopback_issuer() as made:
        yield made


@pytest.fixture
def mcp(staff: LoopbackIssuer) -> dict[str, Any]:
    return with_issuer(staff)


def with_issuer(issuer: LoopbackIssuer, /, **changes: Any) -> dict[str, Any]:
    entries = {**BY_TOKEN, "keycloak": issuer.entry(**changes)}
    return {"AUTHENTICATION": entries, "PUBLIC_URL": SITE, "HOSTS": ["localhost"]}


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    authentication_cache.forget_all()
    yield
    authentication_cache.forget_all()
    key_ends._ends.clear()


@pytest.fixture(autouse=True)
async def _server(served_rows: None) -> AsyncIterator[None]:
    row = Server(slug="by-issuer", access="keycloak token", page_size=1000)
    await writer.run(published, row)
    yield
    await writer.run(row.delete)


def bearing(application: WireCheck, token: str) -> Client:
    return Client(application, path=BY, headers={"authorization": f"Bearer {token}"})


async def asked(application: WireCheck, token: str) -> Outcome:
    return await bearing(application, token).request("tools/list")


async def principal(
    token: str, slug: str = "by-issuer", ways: tuple[str, ...] = ("keycloak",)
) -> Principal:
    request = AuthenticationRequest(
        headers=Headers([(b"authorization", f"Bearer {token}".encode())]),
        host="localhost",
        path=f"/mcp/{slug}",
        server=slug,
    )
    return await find_principal(ServerDefinition(slug=slug, access=ways), request)


# -- who is let in --------------------------------------------------------------------


async def test_a_token_lets_its_user_in(
    application: WireCheck, staff: LoopbackIssuer, user: Any
) -> None:
    client = bearing(application, staff.token())
    found = (await client.call("drill_whoami")).result["structuredContent"]
    assert found["user"] == "ana"
    known = await principal(staff.token())
    assert (known.kind, known.user_id) == ("issuer", str(user.pk))
    assert known.client == "keycloak cursor"
    assert known.scopes == {"mcp:read", "mcp:change"}
    assert known.scope is None


async def test_the_client_of_a_token(process: Process, staff: LoopbackIssuer) -> None:
    for claims, client in (
        ({"azp": "vscode"}, "keycloak vscode"),
        ({"azp": "", "client_id": "cursor"}, "keycloak cursor"),
        ({"client_id": None}, "keycloak"),
        ({"client_id": 7}, "keycloak"),
        ({"client_id": "a\x1fb"}, "keycloak"),
        ({"client_id": "a\nb"}, "keycloak"),
        ({"client_id": "x" * 300}, f"keycloak {'x' * 191}"),
    ):
        changes: dict[str, Any] = {**claims}
        assert (await principal(staff.token(**changes))).client == client


async def test_what_is_refused(application: WireCheck, staff: LoopbackIssuer) -> None:
    """The telling ones of `test_tokens.py`, with what a client reads."""
    algorithm = "The algorithm of the token is not accepted."
    for token, said in (
        (unsigned(staff, "none"), algorithm),
        (signed_with_the_public_key(staff), algorithm),
        (staff.token(nonce="n"), "This is an ID token. Send an access token."),
        (staff.token(exp=time.time() - 99), "The token has expired."),
        (staff.token(aud=f"{SITE}/mcp"), "The token is for another audience."),
        (staff.token("ES256", "two"), "The token is signed with no key of its issuer."),
        (staff.token(sub="zoe"), "This site has no user for the token."),
        (staff.token(sub="ANA"), "This site has no user for the token."),
    ):
        found = await asked(application, token)
        assert (found.status, found.error["message"]) == (401, said)
        assert found.headers["www-authenticate"].endswith(
            f'error="invalid_token", error_description="{said}"'
        )


async def test_a_token_for_one_server_is_none_for_another(
    process: Process, staff: LoopbackIssuer
) -> None:
    good = staff.token()
    assert (await principal(good)).user_name == "ana"
    for slug in ("other", "default"):
        with pytest.raises(Exception, match="another audience"):
            await principal(good, slug)
    both = staff.token(aud=[AUDIENCE, f"{SITE}/mcp"])
    assert (await principal(both, "default")).user_name == "ana"


async def test_what_is_of_others_goes_on_to_the_next_way(
    application: WireCheck, staff: LoopbackIssuer, user: Any
) -> None:
    _, ours = await writer.run(
        lambda: AccessToken.objects.make(user=user, name="a laptop", may="read")
    )
    assert (await asked(application, ours)).status == 200
    for other in ("opaque", "a.b.c", staff.token(iss="https://id.example.com")):
        found = await asked(application, other)
        assert found.status == 401
        assert "error" not in found.headers["www-authenticate"]


async def test_two_issuers_are_two_ways(
    process: Process, settings: Settings, staff: LoopbackIssuer
) -> None:
    with loopback_issuer() as partners:
        entries = {"keycloak": staff.entry(), "partners": partners.entry()}
        settings.MCP = {"AUTHENTICATION": entries, "PUBLIC_URL": SITE}
        for issuer, name in ((staff, "keycloak"), (partners, "partners")):
            known = await principal(issuer.token(), ways=("keycloak", "partners"))
            assert known.client == f"{name} cursor"


async def test_a_function_of_the_site_finds_users(
    process: Process, settings: Settings, staff: LoopbackIssuer
) -> None:
    path = "tests.auth.issuers.users.by_employee"
    settings.MCP = with_issuer(staff, claim="employee", field=None, user=path)
    assert (await principal(staff.token(employee="e-ana"))).user_name == "ana"
    for employee, said in (
        ("e-zoe", "no user for the token"),
        ("refused", "Employees of yesterday are not let in"),
        ("away", "not available at the moment"),
        ("wrong", "not an instance of AUTH_USER_MODEL"),
    ):
        with pytest.raises(Exception, match=said):
            await principal(staff.token(employee=employee))


# -- how far --------------------------------------------------------------------------


async def listed(client: Client) -> set[str]:
    return {x["name"] for x in (await client.request("tools/list")).result["tools"]}


async def test_who_may_not_change_sees_only_what_reads(
    application: WireCheck, staff: LoopbackIssuer
) -> None:
    reading = bearing(application, staff.token(scope="mcp:read"))
    changing = bearing(application, staff.token(scope="mcp:change"))
    seen, every = await listed(reading), await listed(changing)
    assert "drill_add" in seen
    assert "drill_ledger" in every - seen
    # Who may change may read.
    assert seen < every
    hidden = await reading.call("drill_ledger")
    assert hidden.status == 403
    assert hidden.error["message"].startswith("drill_ledger can change something")


async def test_scopes(
    process: Process, settings: Settings, staff: LoopbackIssuer
) -> None:
    reads = Scope(read_only=True)
    table: list[tuple[dict[str, Any], Scope | None]] = [
        ({"scope": "openid mcp:read"}, reads),
        ({"scope": "mcp:read mcp:change"}, None),
        ({"scope": None, "scp": "mcp:read"}, reads),
        ({"scope": None, "scp": ["mcp:read", "mcp:change", 7]}, None),
    ]
    for claims, scope in table:
        assert (await principal(staff.token(**claims))).scope == scope
    settings.MCP = with_issuer(staff, scopes=False)
    for text in (None, "mcp:read"):
        assert (await principal(staff.token(scope=text))).scope is None


def test_scopes_may_be_written_in_several_ways() -> None:
    table: list[tuple[dict[str, Any], set[str]]] = [
        ({}, set()),
        ({"scope": ""}, set()),
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": ["a", 7]}, {"a"}),
        ({"scope": 7}, {"7"}),
        ({"scp": "a"}, {"a"}),
        ({"scope": "a", "scp": "b"}, {"a"}),
    ]
    for claims, scopes in table:
        assert scopes_of(claims) == scopes


async def test_a_token_that_allows_nothing_here_is_told_what_would(
    application: WireCheck, staff: LoopbackIssuer
) -> None:
    for scope in ("openid", None, "mcp:reading"):
        found = await asked(application, staff.token(scope=scope))
        assert (found.status, found.error["message"]) == (
            403,
            "The token has neither the scope mcp:read nor mcp:change.",
        )
        assert found.headers["www-authenticate"] == (
            'Bearer realm="mcp", error="insufficient_scope", scope="mcp:read",'
            f' resource_metadata="{METADATA}"'
        )


# -- how long -------------------------------------------------------------------------


async def test_an_answer_is_kept_until_rights_change(
    application: WireCheck,
    staff: LoopbackIssuer,
    user: Any,
    commit: Commit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times: list[str] = []
    really = issuer_tokens.find_user

    def counting(*arguments: Any) -> Any:
        times.append("asked")
        return really(*arguments)

    monkeypatch.setattr(issuer_tokens, "find_user", counting)
    token = staff.token()
    for _ in range(3):
        assert (await asked(application, token)).status == 200
    assert len(times) == 1
    user.is_active = False
    await commit(user.save)
    found = await asked(application, token)
    assert (found.status, found.error["message"]) == (401, "The user may not log in.")
    assert len(times) == 2


async def test_no_answer_is_kept_longer_than_its_token(
    process: Process, staff: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time()
    token = staff.token(exp=began + 5)
    assert (await principal(token)).user_name == "ana"
    assert len(authentication_cache) == 1
    real = issuer_tokens.verify
    times: list[str] = []

    async def counting(*arguments: Any) -> Any:
        times.append("asked")
        return await real(*arguments)

    monkeypatch.setattr(issuer_tokens, "verify", counting)
    for seconds, asked_for in ((4, 0), (5, 1), (6, 2)):
        monkeypatch.setattr(time, "time", lambda s=seconds: began + s)
        # Within the leeway it is good, and looked at each time.
        assert (await principal(token)).user_name == "ana"
        assert len(times) == asked_for


async def standing(client: Client) -> Visit:
    notifications = {"resourceSubscriptions": ["test://static-text"]}
    visit = client.begin("subscriptions/listen", {"notifications": notifications})
    await visit.message()
    return visit


async def test_what_is_open_ends_with_its_user(
    application: WireCheck, staff: LoopbackIssuer, user: Any, commit: Commit
) -> None:
    stream = await standing(bearing(application, staff.token()))
    user.is_active = False
    await commit(user.save)
    await stream.done()


async def test_what_is_open_ends_after_the_newest_token(
    application: WireCheck,
    staff: LoopbackIssuer,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = time.time()
    first = staff.token(exp=began + 300)
    other = staff.token(exp=began + 900, client_id="other")
    ends, stays = [await standing(bearing(application, x)) for x in (first, other)]
    # The client has a newer one.
    assert (await asked(application, staff.token(exp=began + 600))).status == 200
    for seconds in (300 + LEEWAY_S, 600 + LEEWAY_S - 1):
        monkeypatch.setattr(time, "time", lambda s=seconds: began + s)
        token_cache.mark_unsure()
        process.revocation.start_check()
        await ends.quiet()
        assert not ends.ended
    monkeypatch.setattr(time, "time", lambda: began + 600 + LEEWAY_S)
    token_cache.mark_unsure()
    process.revocation.start_check()
    await ends.done()
    await stays.quiet()
    assert not stays.ended
    await stays.leave()


# -- what is away, or wrong -----------------------------------------------------------


async def test_an_issuer_that_is_away_is_an_outage(
    application: WireCheck, settings: Settings
) -> None:
    with loopback_issuer() as own:
        settings.MCP = with_issuer(own)
        token = own.token()
        own.stop()
        found = await asked(application, token)
        assert (found.status, found.headers["retry-after"]) == (503, "5")
        assert "www-authenticate" not in found.headers


@pytest.mark.parametrize(
    "changes", [{"issuer": "http://id.example.com"}, {"claim": "preferred_username"}]
)
async def test_wrong_options_close_the_way_and_nothing_else(
    application: WireCheck,
    settings: Settings,
    staff: LoopbackIssuer,
    user: Any,
    caplog: pytest.LogCaptureFixture,
    changes: dict[str, str],
) -> None:
    settings.MCP = with_issuer(staff, **changes)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert (await asked(application, staff.token())).status == 401
    told = [each for each in caplog.records if "keycloak" in each.getMessage()]
    assert len(told) == 1
    _, ours = await writer.run(
        lambda: AccessToken.objects.make(user=user, name="a laptop", may="read")
    )
    assert (await asked(application, ours)).status == 200


def test_what_an_entry_is_made_into(settings: Settings, staff: LoopbackIssuer) -> None:
    settings.MCP = with_issuer(staff, cache="header")
    found = authenticator("keycloak")
    assert (found.kind, found.is_async, found.keeps) == ("issuer", True, False)
    assert found.issuer == staff.url
    assert authenticator("token").issuer == ""


async def test_no_log_has_a_token_in_it(
    application: WireCheck, staff: LoopbackIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    shown = [staff.token(), staff.token(sub="zoe"), staff.token(exp=1)]
    with caplog.at_level(logging.DEBUG):
        for each in shown:
            await asked(application, each)
    assert "A token of 'keycloak' was refused: The token has expired." in caplog.text
    for each in shown:
        assert all(part not in caplog.text for part in each.split(".")[1:])
