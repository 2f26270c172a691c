"""The page on which a person lets a program in: what it asks, and what it refuses."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any
from urllib.parse import unquote

import django
import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from mcp_app.auth import connections
from mcp_app.models import AccessToken, Connection, Server, Tool
from mcp_app.oauth import consent
from mcp_app.protocol.errors import Unavailable
from tests.oauth.program import (
    AUTHORIZE,
    CONSENT,
    ORIGIN,
    RESOURCE,
    Program,
    allow,
    answer_in,
    page_of,
    sealed_in,
    sign_in,
)
from tests.published import published

SENDS_POLICY = "django.middleware.csp.ContentSecurityPolicyMiddleware"
"""Django has it from 6.0 on."""

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("support")]


def words(response: Any) -> str:
    text = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", text)


def filled(hers: Client, program: Program) -> dict[str, str]:
    """Register, open the page, and return what *Allow* sends."""
    program.register()
    sealed = sealed_in(page_of(hers, program.request()))
    return {"sealed": sealed, "may": "read", "which": "all", "ends": "90"}


def test_whoever_is_not_known_logs_in_first(client: Client, program: Program) -> None:
    program.register()
    response = client.get(program.request())
    assert response.status_code == 302
    assert response["Location"].startswith("/account/login/?next=/mcp-oauth/authorize")


def test_the_page_says_what_is_proved_and_what_is_not(
    hers: Client, program: Program
) -> None:
    program.register(client_name="Claude <b>“x”</b>\u202e")
    response = hers.get(program.request())
    text = words(response)
    assert "Let claude.ai use Support desk as you?" in text
    assert "It calls itself “Claude" in text
    assert "Nobody has checked that." in text
    assert "<b>" not in response.content.decode()
    assert "\u202e" not in text
    assert "It could use" in text
    assert response["Cache-Control"] == "no-store, private"
    # With none at all, browsers send the form with "Origin: null".
    assert response["Referrer-Policy"] == "same-origin"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Content-Security-Policy"] == "frame-ancestors 'none'"


@pytest.mark.parametrize("asked", ["", "client_id=x"])
def test_the_policy_of_django_csp_holds_too(
    settings: Any, hers: Client, program: Program, support: Server, asked: str
) -> None:
    """Its middleware sends one header: the site's, in which only this is ours."""
    settings.MIDDLEWARE = ["csp.middleware.CSPMiddleware", *settings.MIDDLEWARE]
    directives = {"default-src": ["'none'"], "frame-ancestors": ["'self'"]}
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": directives}
    program.register()
    address = f"{AUTHORIZE}?{asked}" if asked else program.request()
    sent = hers.get(address)["Content-Security-Policy"]
    assert sorted(sent.split("; ")) == ["default-src 'none'", "frame-ancestors 'none'"]
    # Where the site wants no policy, the older header forbids frames.
    settings.CONTENT_SECURITY_POLICY["EXCLUDE_URL_PREFIXES"] = ["/mcp-oauth/"]
    response = hers.get(address)
    assert "Content-Security-Policy" not in response
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("middleware", "sent"),
    [([], "frame-ancestors 'none'")]
    + [([SENDS_POLICY], "default-src 'none'; frame-ancestors 'none'")]
    * (django.VERSION >= (6, 0)),
)
def test_the_policy_of_django_holds_too_if_its_middleware_sends_it(
    settings: Any, hers: Client, program: Program, middleware: list[str], sent: str
) -> None:
    import_module("csp.middleware")  # Which sends nothing unless it is named.
    settings.MIDDLEWARE = [*middleware, *settings.MIDDLEWARE]
    settings.SECURE_CSP = {"default-src": ["'none'"], "frame-ancestors": ["'self'"]}
    program.register()
    assert hers.get(program.request())["Content-Security-Policy"] == sent


def test_a_program_on_this_computer_is_warned_about(
    hers: Client, program: Program
) -> None:
    program.redirects = ["http://127.0.0.1/callback"]
    program.redirect = "http://127.0.0.1:51123/callback"
    program.register()
    text = words(hers.get(program.request()))
    assert "Let a program on this computer use Support desk as you?" in text
    assert "choose Cancel" in text
    assert "127.0.0.1:51123" in text


def test_less_than_was_asked_for(hers: Client, program: Program) -> None:
    answer = sign_in(program, hers, may="read", ends="30")
    assert answer["scope"] == "mcp:read"
    row = AccessToken.objects.get()
    assert (row.may, row.connection.may_ask) == ("read", "change")


def test_what_will_be_missing(hers: Client, program: Program) -> None:
    """The safe choice stays chosen, and says what it costs."""
    for name, reads in (("look_up", True), ("refund", False)):
        config = '{"content": [{"type": "text", "text": "Hello"}]}'
        published(Tool(name=name, config=config, read_only=reads))
    program.register()
    response = hers.get(program.request())
    assert re.search(r'value="read"[^>]* checked', response.content.decode())
    figures = re.search(
        r"(\d+) tools \(\d+ only look .*? (\d+) change", words(response)
    )
    assert figures
    missing = (
        rf"without that, {figures[2]} of {figures[1]} tools (is|are) missing in it\."
    )
    assert re.search(f"It asked to change things, too; {missing}", words(response))
    asks_less = hers.get(program.request(scope="mcp:read"))
    assert "It asked to change things" not in words(asks_less)
    sign_in(program, hers, may="read")
    row = AccessToken.objects.get()
    page = hers.get(reverse("mcp_account:app", args=[row.pk]))
    assert "It asked to change things, too;" in words(page)


def test_never_more_than_was_asked_for(hers: Client, program: Program) -> None:
    program.register()
    address = program.request(scope="mcp:read")
    page = page_of(hers, address)
    assert "also change things" not in page
    sent = {"sealed": sealed_in(page), "may": "change", "ends": "90"}
    response = hers.post(CONSENT, sent)
    assert "Select a valid choice" in words(response)
    assert not Connection.objects.exists()


def test_groups(hers: Client, program: Program) -> None:
    for name, tags in (("look_up", "orders"), ("refund", "orders,refunds")):
        config = '{"content": [{"type": "text", "text": "Hello"}]}'
        published(Tool(name=name, config=config, tags=tags))
    program.register()
    response = allow(hers, program.request(), which="some")
    assert "Choose at least one group, or all." in words(response)
    assert "orders (2)" in words(response)
    assert not Connection.objects.exists()
    allow(hers, program.request(), which="some", tags=["refunds", "orders"])
    assert AccessToken.objects.get().tag_names == {"orders", "refunds"}


def test_cancel(hers: Client, program: Program) -> None:
    program.register()
    answer = answer_in(allow(hers, program.request(), cancel="1"))
    assert answer == {"error": "access_denied", "state": "a state", "iss": ORIGIN}
    assert not Connection.objects.exists()


def test_sign_out_comes_back_to_its_question(hers: Client, program: Program) -> None:
    program.register()
    response = allow(hers, program.request(), sign_out="1")
    assert response["Location"].startswith("/account/login/?next=/mcp-oauth/authorize")
    assert hers.get(program.request()).status_code == 302


def test_allow_pressed_twice_makes_one_app(hers: Client, program: Program) -> None:
    sent = filled(hers, program)
    first, second = (answer_in(hers.post(CONSENT, sent)) for _ in range(2))
    assert first == second
    assert Connection.objects.count() == 1
    assert program.exchange(first["code"]).status_code == 200
    third = hers.post(CONSENT, sent)
    assert third.status_code == 400
    assert "This page was used already, or is too old." in words(third)
    assert AccessToken.objects.get().revoked is None


def test_allow_pressed_twice_while_the_other_press_is_stored(
    hers: Client, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one looked before the first one was there."""
    sent = filled(hers, program)
    first, look = answer_in(hers.post(CONSENT, sent)), connections._code_of_page
    looks: list[Any] = [lambda _: None, look]

    def late(page: Any) -> Any:
        return looks.pop(0)(page)

    monkeypatch.setattr(connections, "_code_of_page", late)
    assert answer_in(hers.post(CONSENT, sent)) == first
    assert AccessToken.objects.count() == 1


@pytest.mark.parametrize(
    "error", [TimeoutError(), OperationalError("Away."), Unavailable("", retry_after=5)]
)
def test_an_outage_is_a_page_that_says_so(
    hers: Client, program: Program, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    sent = filled(hers, program)
    monkeypatch.setattr(consent, "visible_to", fail)
    for response in (hers.get(program.request()), hers.post(CONSENT, sent)):
        assert response.status_code == 503
        assert response["Retry-After"] == "5"
        assert "Try again in a minute." in words(response)
    assert not Connection.objects.exists()


def test_a_page_of_somebody_else_or_that_is_too_old(
    hers: Client, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = filled(hers, program)
    other = Client()
    other.force_login(User.objects.create_user("bert"))
    assert other.post(CONSENT, sent).status_code == 400
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="ana"))
    assert strict.post(CONSENT, sent).status_code == 403
    monkeypatch.setattr(consent, "LASTS_S", -1)
    assert hers.post(CONSENT, sent).status_code == 400
    assert not Connection.objects.exists()


def test_neither_a_cookie_nor_the_session_has_anything_of_it(
    hers: Client, program: Program
) -> None:
    """What is asked stands sealed in the page, what is allowed in rows."""
    program.register()
    before = dict(hers.session.items())
    page = hers.get(program.request())
    assert set(page.cookies) <= {"csrftoken"}
    assert not Connection.objects.exists()
    answer = allow(hers, program.request())
    assert set(answer.cookies) <= {"csrftoken"}
    assert Connection.objects.exists()
    assert dict(hers.session.items()) == before


def test_other_connections_are_told_and_ended(hers: Client, program: Program) -> None:
    sign_in(program, hers)
    assert "It has 1 connection already." in words(hers.get(program.request()))
    allow(hers, program.request(), end_others="on")
    ended = Connection.objects.order_by("pk").first()
    assert ended is not None
    assert (ended.ended, ended.token.revoked is None) == ("person", False)
    assert AccessToken.objects.filter(revoked=None).count() == 1


def test_ending_others_twice_spares_the_new_app(hers: Client, program: Program) -> None:
    sign_in(program, hers)
    sealed = sealed_in(page_of(hers, program.request()))
    sent = {"sealed": sealed, "may": "read", "ends": "90", "end_others": "on"}
    first, second = (answer_in(hers.post(CONSENT, sent)) for _ in range(2))
    assert first == second
    assert program.exchange(second["code"]).status_code == 200
    assert AccessToken.objects.filter(revoked=None).count() == 1


def test_groups_that_are_gone_do_not_become_all(hers: Client, program: Program) -> None:
    program.register()
    sent = {"which": "some", "tags": ["orders"]}
    assert "Select a valid choice" in words(allow(hers, program.request(), **sent))
    assert not Connection.objects.exists()


@pytest.mark.parametrize("state", ["%01" * 2_400, '"' * 7_200, "a" * 7_200])
def test_a_long_state_comes_back(hers: Client, program: Program, state: str) -> None:
    program.register()
    address = f"{program.request(state=None)}&state={state}"
    assert answer_in(allow(hers, address))["state"] == unquote(state)


@pytest.mark.parametrize("label", ["x" * 60, "x" * 200])
def test_a_program_with_a_long_host(hers: Client, program: Program, label: str) -> None:
    program.redirect = f"https://{label}.{label}.example/back"
    program.redirects = [program.redirect]
    program.register(client_name=None)
    assert "code" in answer_in(allow(hers, program.request()))
    row = AccessToken.objects.get()
    assert row.name.endswith("x.example")
    assert len(row.name) == 100
    assert row.connection.redirect_host == f"{label}.{label}.example"


def test_a_person_without_the_right_is_told_so(
    hers: Client, program: Program, ana: User, support: Server
) -> None:
    support.permission = "auth.view_user"
    support.save()
    program.register()
    response = hers.get(program.request())
    assert response.status_code == 400
    assert "You may not use this server" in words(response)
    ana.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert hers.get(program.request()).status_code == 200


NOT_KNOWN: dict[str, dict[str, Any]] = {
    "no client": {"client_id": None},
    "an unknown client": {"client_id": "claude"},
    "a registration with one character changed": {"client_id": "mcp_cl_AAAA"},
    "no redirect": {"redirect_uri": None},
    "another redirect": {"redirect_uri": "https://evil.example/back"},
    "a longer redirect": {"redirect_uri": "https://claude.ai/api/mcp/auth_callback/x"},
    "a redirect with a user part": {
        "redirect_uri": "https://claude.ai@evil.example/api/mcp/auth_callback"
    },
    "a redirect with a backslash": {
        "redirect_uri": "https://claude.ai\\@evil.example/api/mcp/auth_callback"
    },
    "a redirect twice": {
        "redirect_uri": [
            "https://claude.ai/api/mcp/auth_callback",
            "https://evil.example/back",
        ]
    },
    "a state twice": {"state": ["a", "b"]},
}
"""Requests of which nobody knows whose they are: the page has no link."""
KNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "a token at once": ({"response_type": "token"}, "unsupported_response_type"),
    "no type": ({"response_type": None}, "unsupported_response_type"),
    "a request object": ({"request": "e30.e30."}, "request_not_supported"),
    "a fragment": ({"response_mode": "fragment"}, "invalid_request"),
    "no PKCE": ({"code_challenge": None}, "invalid_request"),
    "plain": ({"code_challenge_method": "plain"}, "invalid_request"),
    "no method": ({"code_challenge_method": None}, "invalid_request"),
    "a short challenge": ({"code_challenge": "x" * 42}, "invalid_request"),
    "another server": ({"resource": f"{ORIGIN}/mcp/sales"}, "invalid_target"),
    "another site": ({"resource": "https://evil.example/mcp"}, "invalid_target"),
    "two servers": ({"resource": [RESOURCE, f"{ORIGIN}/mcp"]}, "invalid_target"),
    "no page": ({"prompt": "none"}, "interaction_required"),
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_a_request_of_an_unknown_program(
    hers: Client, program: Program, case: str
) -> None:
    program.register()
    response = hers.get(program.request(**NOT_KNOWN[case]))
    assert response.status_code == 400
    assert "Location" not in response
    page = response.content.decode()
    assert 'http-equiv="refresh"' not in page
    assert "evil.example" not in "".join(re.findall(r'href="([^"]*)"', page))


@pytest.mark.parametrize("case", KNOWN)
def test_a_request_that_is_wrong(hers: Client, program: Program, case: str) -> None:
    program.register()
    changed, error = KNOWN[case]
    response = hers.get(program.request(**changed))
    assert response.status_code == 400
    assert "Location" not in response
    page = response.content.decode()
    assert 'http-equiv="refresh"' not in page
    [link] = re.findall(r'href="(https://claude\.ai[^"]*)"', page)
    assert f"error={error}" in link
    assert "state=a%20state" in link
    assert "iss=https%3A%2F%2Fshop.example.com" in link


def test_a_server_that_takes_no_sign_in(hers: Client, program: Program) -> None:
    published(Server(slug="sales", access="token"))
    program.register()
    response = hers.get(program.request(resource=f"{ORIGIN}/mcp/sales"))
    assert "resource must be a server of this site to sign in to." in words(response)


def test_a_frame_is_refused(hers: Client, program: Program) -> None:
    program.register()
    headers = {"Sec-Fetch-Dest": "iframe"}
    assert hers.get(program.request(), headers=headers).status_code == 400


def test_hosts_that_are_not_let_in(
    hers: Client, program: Program, settings: Any
) -> None:
    settings.MCP = {**settings.MCP, "OAUTH": {"clients": ["chatgpt.com"]}}
    program.register()
    response = hers.get(program.request())
    assert "does not let programs of claude.ai in" in words(response)
