"""Entries of `MCP["AUTHENTICATION"]`: what verifies behind them, and what cannot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final, cast

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.test import Client as Browser
from django.test import override_settings
from pytest_django import Settings

from mcp_app.auth.authenticators import (
    SESSION_INSTEAD,
    BringsCsrf,
    Unusable,
    authenticator,
    django_session,
)
from mcp_app.conf import BY_ISSUER, BY_TOKEN
from mcp_app.interface.principal import AuthenticationRequest
from mcp_app.models import Server
from mcp_app.pools.database import authenticators, writer
from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.protocol.headers import Headers
from mcp_app.transports.http.request_handler import policy
from tests.asgi_client import Client, HeaderChanges, Outcome, outcome, routing_headers
from tests.drill.ports import free_port
from tests.serving import counted
from tests.wire.middleware import Application, WireCheck

BY_NAME = "tests.auth.callables.by_name"
CLASSES = "tests.auth.drf_classes"


@pytest.mark.parametrize(
    ("given", "kind", "keeps"),
    [
        (BY_TOKEN["token"], "access-token", False),
        (BY_ISSUER, "issuer", False),
        (SESSION_INSTEAD, "session", False),
        (BY_NAME, "", False),
        ({"path": BY_NAME}, "", False),
        ({"path": BY_NAME, "cache": "header"}, "", True),
        ({"path": f"{CLASSES}.Odd", "cache": "header"}, "drf", True),
    ],
)
def test_what_an_entry_says(
    settings: Settings, given: Any, kind: str, keeps: bool
) -> None:
    settings.MCP = {"AUTHENTICATION": {"a": given}}
    found = authenticator("a")
    assert (found.name, found.kind, found.keeps) == ("a", kind, keeps)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no.such.module", "'no.such.module' cannot be imported"),
        ("....", "'....' cannot be imported"),
        ("tests.settings", "is not callable"),
        ({"path": BY_TOKEN["token"], "cache": "header"}, "looks at more than"),
        ({"path": SESSION_INSTEAD, "cache": "header"}, "looks at more than"),
        ("tests.auth.callables.ByBadge", "not an authentication class of Django REST"),
        ({}, 'has no "path"'),
        ({"cache": "header"}, 'has no "path"'),
        ({"path": BY_NAME, "cache": "body"}, "has the \"cache\" 'body'"),
        ({"path": BY_NAME, "cash": "header"}, "no option 'cash'. Did you mean 'cache'"),
        ({"path": BY_NAME, "issuer": "https://id.example.com"}, "no option 'issuer'."),
        ({"path": BY_ISSUER, "isuer": "a"}, "'isuer'. Did you mean 'issuer'?"),
        ({"path": 7}, 'has the "path" 7: it must be a text.'),
    ],
)
def test_what_can_verify_nobody(settings: Settings, given: Any, said: str) -> None:
    settings.MCP = {"AUTHENTICATION": {"mine": given}}
    with pytest.raises(Unusable) as raised:
        authenticator("mine")
    assert said in str(raised.value)
    assert "MCP[\"AUTHENTICATION\"]['mine']" in str(raised.value)


@pytest.mark.parametrize(
    "path",
    ["rest_framework.authentication.SessionAuthentication", f"{CLASSES}.Session"],
)
def test_a_session_comes_by_its_own_way(settings: Settings, path: str) -> None:
    settings.MCP = {"AUTHENTICATION": {"mine": path}}
    with pytest.raises(BringsCsrf, match=f"Use '{SESSION_INSTEAD}'"):
        authenticator("mine")


def test_other_settings_are_seen_at_once() -> None:
    for path in (BY_NAME, "tests.auth.callables.by_badge"):
        with override_settings(MCP={"AUTHENTICATION": {"a": path}}):
            assert authenticator("a").authenticate.__name__ == path.rpartition(".")[2]


# -- sessions --------------------------------------------------------------------------


BY: Final = "/mcp/by-session"
SERVER: Final = {"slug": "by-session", "access": "session token"}
SECRET: Final = "s" * 32
ORIGIN: Final = "http://localhost"
PROOF: Final = {"x-csrftoken": SECRET, "origin": ORIGIN}
VERSIONS: Final = ("2025-11-25", "2026-07-28")
EVIL: Final = "https://evil.example"
FORBIDDEN: Final = 403


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {
        "AUTHENTICATION": {
            "session": "mcp_app.authentication.django_session",
            "token": "mcp_app.authentication.access_token",
        },
        "ORIGINS": [ORIGIN, "https://app.example"],
    }


@pytest.fixture
async def user(served_rows: None) -> AsyncIterator[Any]:
    users: Any = get_user_model()._default_manager
    made = await writer.run(lambda: users.create_user("ana", password="one"))
    yield made
    await writer.run(Session.objects.all().delete)
    await writer.run(made.delete)


def signed_in(user: Any) -> str:
    browser = Browser()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


@pytest.fixture
async def cookie(user: Any, settings: Settings) -> str:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False
    return f"csrftoken={SECRET}; sessionid={await writer.run(signed_in, user)}"


@pytest.fixture
def browser(application: WireCheck, server: Server, cookie: str) -> Client:
    """A page of the site that shows all that is demanded."""
    return Client(application, path=BY, headers={"cookie": cookie, **PROOF})


async def asked(client: Client, **headers: str | None) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.sent(client.message("tools/list"), named)


# -- who is let in ----------------------------------------------------------------


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("version", VERSIONS)
async def test_who_is_signed_in_comes_in(
    application: WireCheck, cookie: str, version: str
) -> None:
    headers = {"cookie": cookie, **PROOF}
    client = await Client(application, version, path=BY, headers=headers).open()
    found = (await client.call("drill_whoami")).result["structuredContent"]
    assert found["user"] == "ana"


async def test_the_principal(user: Any, cookie: str) -> None:
    pairs = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
    pairs += [(name.encode(), value.encode()) for name, value in PROOF.items()]
    request = AuthenticationRequest(
        headers=Headers(pairs), host="localhost", path=BY, server="by-session"
    )
    found = await authenticators.run(django_session, request)
    assert found is not None
    assert found.key.split("\x1f") == ["session", str(user.pk), "session"]


async def test_cookies_that_http2_took_apart(browser: Client, cookie: str) -> None:
    message = browser.message("tools/list")
    found = await browser.sent(message, {"cookie": cookie.split("; ")})
    assert found.status == 200


@pytest.mark.parametrize(
    "cookie_of", ["", "sessionid=", "sessionid=nothing", "csrftoken=x; a=b"]
)
async def test_without_a_session(browser: Client, cookie_of: str) -> None:
    found = await asked(browser, cookie=cookie_of)
    assert found.status == 401
    assert found.headers["www-authenticate"] == 'Bearer realm="mcp"'


def end_session(user: Any, way: str) -> int:
    """End it, by its row or for its user; return how many rows are left."""
    if way == "row":
        Session.objects.all().delete()
    elif way == "password":
        user.set_password("another")
    else:
        user.is_active = False
    user.save()
    return Session.objects.count()


@pytest.mark.parametrize(("way", "rows"), [("row", 0), ("password", 1), ("user", 1)])
async def test_a_session_ends(browser: Client, user: Any, way: str, rows: int) -> None:
    assert (await asked(browser)).status == 200
    assert await writer.run(end_session, user, way) == rows
    assert (await asked(browser)).status == 401
    # The row stays the site's to delete.
    assert await writer.run(Session.objects.count) == rows


async def test_what_is_open_ends_for_who_may_not_log_in_any_more(
    browser: Client, user: Any, process: Process
) -> None:
    """T34; the streams of others go on."""
    watched = {"notifications": {"resourceSubscriptions": ["test://static-text"]}}
    visit = browser.begin("subscriptions/listen", watched)
    assert await visit.message() is not None
    await writer.run(user.save)
    await process.gate.wait_for_check()
    await visit.quiet()
    assert not visit.ended
    user.is_active = False
    await writer.run(user.save)
    await process.gate.wait_for_check()
    await visit.done()


async def test_an_inactive_user(browser: Client, user: Any, settings: Settings) -> None:
    backend = "django.contrib.auth.backends.AllowAllUsersModelBackend"
    settings.AUTHENTICATION_BACKENDS = [backend]
    key = await writer.run(signed_in, user)
    user.is_active = False
    await writer.run(user.save)
    found = await asked(browser, cookie=f"csrftoken={SECRET}; sessionid={key}")
    assert found.status == 401
    assert found.error["message"] == "The user may not log in."


async def test_a_former_secret_key_is_good(browser: Client, settings: Settings) -> None:
    """Django would give it another id, of which the browser would not hear."""
    key = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key " * 5, [key]
    before = await writer.run(lambda: list(Session.objects.values()))
    assert (await asked(browser)).status == 200
    assert await writer.run(lambda: list(Session.objects.values())) == before


async def test_it_is_no_way_in_elsewhere(browser: Client, server: Server) -> None:
    browser.path = "/mcp/private"
    assert (await asked(browser)).status == 401


# -- T18: what another page could send -----------------------------------------------


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"origin": None}, "The Origin header is missing"),
        ({"x_csrftoken": None}, "CSRF token missing"),
        ({"x_csrftoken": "t" * 32}, "incorrect"),
        ({"x_csrftoken": "short"}, "incorrect length"),
        # Allowed to call with a token; Django does not trust it with a session.
        ({"origin": "https://app.example"}, "Origin checking failed"),
        ({"origin": "http://localhost:80"}, "Origin checking failed"),
        ({"origin": None, "referer": f"{ORIGIN}/page"}, "The Origin header is missing"),
        ({"origin": None, "sec_fetch_site": "same-origin"}, "The Origin header is"),
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_t18_without_token_or_origin(
    browser: Client, headers: dict[str, str | None], said: str, content_type: str
) -> None:
    found = await asked(browser, content_type=content_type, **headers)
    assert found.status == FORBIDDEN
    assert said in found.error["message"]


async def test_t18_without_the_cookie_of_a_token(browser: Client, cookie: str) -> None:
    found = await asked(browser, cookie=cookie.partition("; ")[2])
    assert found.status == FORBIDDEN
    assert "CSRF cookie not set" in found.error["message"]


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost.evil.example"])
async def test_t18_an_origin_that_is_not_allowed(browser: Client, origin: str) -> None:
    assert (await asked(browser, origin=origin)).status == FORBIDDEN


async def test_t18_the_token_in_the_body_does_not_count(browser: Client) -> None:
    form = f"csrfmiddlewaretoken={SECRET}".encode()
    for content_type in (
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
    ):
        changes = {"content-type": content_type, "x-csrftoken": None}
        found = await outcome(browser.visit("POST", form, headers=changes))
        assert found.status == FORBIDDEN


CALL: Final = {"name": "drill_ledger", "arguments": {"key": "t18", "seconds": 0}}


@pytest.mark.parametrize(
    ("changes", "status", "rows"),
    [
        ({"content-type": "text/plain"}, 415, 0),
        ({"content-type": "application/jsonx"}, 415, 0),
        ({"content-type": "text/plain", "x-csrftoken": None}, 403, 0),
        ({"x-csrftoken": None}, 403, 0),
        ({"content-type": "application/json; charset=utf-8"}, 200, 1),
    ],
)
async def test_t18_the_tool_does_not_run(
    browser: Client, changes: HeaderChanges, status: int, rows: int
) -> None:
    found = await browser.sent(browser.message("tools/call", CALL), changes)
    assert found.status == status
    assert (await counted())["Ledger"] == rows


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("taken", ["x-csrftoken", "origin"])
async def test_t18_streams_and_sessions_too(
    application: WireCheck, server: Server, cookie: str, method: str, taken: str
) -> None:
    headers = {"cookie": cookie, **PROOF}
    client = await Client(application, VERSIONS[0], path=BY, headers=headers).open()
    found = await outcome(client.visit(method, headers={taken: None}))
    assert found.status == FORBIDDEN
    # The session is there as before.
    assert (await client.request("ping")).status == 200


async def test_a_stream_of_a_page_of_this_site(
    application: WireCheck, server: Server, cookie: str
) -> None:
    """Browsers send no Origin with a GET to where the page is from."""
    headers = {"cookie": cookie, **PROOF}
    client = await Client(application, VERSIONS[0], path=BY, headers=headers).open()
    changes = {"origin": None, "accept": "text/event-stream"}
    for site, status in (("cross-site", 403), ("same-site", 403), ("none", 403)):
        again = {**changes, "sec-fetch-site": site}
        assert (await outcome(client.visit("GET", headers=again))).status == status
    again = {**changes, "sec-fetch-site": "same-origin"}
    assert (
        await outcome(client.visit("GET", headers={**again, "x-csrftoken": None}))
    ).status == FORBIDDEN
    stream = await client.visit("GET", headers=again).begun()
    assert stream.status == 200
    await stream.leave()


@pytest.mark.parametrize(
    ("origin", "status"), [(ORIGIN, 204), ("https://app.example", 204), (EVIL, 403)]
)
async def test_t18_no_other_origins(browser: Client, origin: str, status: int) -> None:
    wanted = {
        "origin": origin,
        "cookie": None,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, x-csrftoken",
    }
    found = await outcome(browser.visit("OPTIONS", headers=wanted))
    assert found.status == status
    assert "access-control-allow-credentials" not in found.headers
    # Nor may another page send the token.
    assert "x-csrftoken" not in found.headers.get("access-control-allow-headers", "")
    found = await asked(browser)
    assert "access-control-allow-credentials" not in found.headers


async def test_a_program_that_has_a_cookie_as_well(browser: Client) -> None:
    """What it shows is looked at; the cookie does not count without a token."""
    found = await asked(browser, x_csrftoken=None, authorization="Bearer mcp_no")
    assert found.status == 401
    assert found.error["message"] == "There is no such access token."


# -- how the site is set up -------------------------------------------------------


async def test_the_token_in_the_session(
    browser: Client, user: Any, settings: Settings
) -> None:
    settings.CSRF_USE_SESSIONS = True

    def with_token() -> str:
        visitor = Browser()
        visitor.force_login(user)
        session = visitor.session
        session["_csrftoken"] = SECRET
        session.save()
        return visitor.cookies["sessionid"].value

    key = await writer.run(with_token)
    assert (await asked(browser, cookie=f"sessionid={key}")).status == 200
    found = await asked(browser, cookie=f"sessionid={key}", x_csrftoken="t" * 32)
    assert found.status == FORBIDDEN


async def test_behind_a_proxy_with_tls(browser: Client, settings: Settings) -> None:
    settings.MCP = {**settings.MCP, "ORIGINS": ["https://localhost"]}
    policy.clear_cache()
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    proof = {"origin": "https://localhost", "x_forwarded_proto": "https"}
    assert (await asked(browser, **proof)).status == 200
    proof["x_forwarded_proto"] = "http"
    assert (await asked(browser, **proof)).status == FORBIDDEN


async def test_sessions_in_a_lost_cache(browser: Client, settings: Settings) -> None:
    """Django takes it for an empty one; the client is told to come back."""
    settings.CACHES = {
        **settings.CACHES,
        "away": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{free_port()}",
        },
    }
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cache"
    settings.SESSION_CACHE_ALIAS = "away"
    found = await asked(browser)
    assert found.status == 503
    assert "retry-after" in found.headers
    settings.SESSION_CACHE_ALIAS = "default"
    assert (await asked(browser)).status == 401


# -- other ways to the endpoint ------------------------------------------------------


async def test_through_a_view(process: Process, server: Server, cookie: str) -> None:
    """The site's own middleware is around it, which finds nothing to check."""
    check = WireCheck(cast("Application", ASGIHandler()))
    client = Client(check, path=BY, headers={"cookie": cookie, **PROOF})
    assert (await asked(client)).status == 200
    for taken in PROOF:
        assert (await asked(client, **{taken: None})).status == FORBIDDEN
    assert check.violations == []


async def test_through_wsgi(
    process: Process, server: Server, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_loop", process.loop)
    browser = Browser(enforce_csrf_checks=True)
    body = Client(WireCheck(cast("Application", ASGIHandler()))).message("tools/list")
    headers = {
        **routing_headers(body),
        **PROOF,
        "mcp-protocol-version": VERSIONS[1],
        "cookie": cookie,
        "host": "localhost",
        "accept": "application/json",
    }

    def status(**changes: str) -> int:
        kind = "application/json"
        sent = {**headers, **changes}
        answer = browser.post(BY, json.dumps(body), kind, headers=sent)
        return answer.status_code

    assert await asyncio.to_thread(status) == 200
    assert await asyncio.to_thread(status, **{"x-csrftoken": "t" * 32}) == FORBIDDEN
    assert await asyncio.to_thread(status, cookie="a=b") == 401
    await asyncio.to_thread(connections.close_all)


async def test_the_old_transport(browser: Client) -> None:
    browser.path = f"{BY}/sse"
    changes: dict[str, str | None] = {"accept": "text/event-stream"}
    for taken in PROOF:
        found = await outcome(browser.visit("GET", headers={**changes, taken: None}))
        assert found.status == FORBIDDEN
    stream = await browser.visit("GET", headers=changes).begun()
    assert stream.status == 200
    await stream.leave()
