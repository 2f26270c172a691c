"""Registering, exchanging, refreshing, ending: what programs send and get."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.signals import got_request_exception
from django.test import Client
from django.views.debug import ExceptionReporter

from mcp_app.auth import connections, rights
from mcp_app.auth.token_cache import read_keys
from mcp_app.models import AccessToken, Connection, IssuedToken, Server
from mcp_app.models.fields import digest
from mcp_app.oauth import endpoints
from mcp_app.oauth.endpoints import MAX_CONCURRENT_REQUESTS
from tests.oauth.program import ORIGIN, RESOURCE, Program, allow, answer_in, sign_in
from tests.published import published

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.databases,
    pytest.mark.usefixtures("support"),
]

PATIENCE_S = 60


def test_a_program_signs_in_and_refreshes(program: Program, hers: Client) -> None:
    assert program.register().status_code == 201
    answer = answer_in(allow(hers, program.request()))
    assert answer == {"code": answer["code"], "state": "a state", "iss": ORIGIN}
    first = program.exchange(answer["code"]).json()
    assert first["token_type"] == "Bearer"
    assert first["scope"] == "mcp:read mcp:change"
    assert first["expires_in"] == 8 * 3_600
    second = program.refresh(first["refresh_token"]).json()
    assert second["access_token"] != first["access_token"]
    assert second["refresh_token"] != first["refresh_token"]
    assert IssuedToken.objects.count() == 2
    row = AccessToken.objects.get()
    assert (row.name, row.may, row.prefix[:4]) == ("Claude", "change", "app_")
    assert [each.slug for each in row.servers.all()] == ["support"]


def test_a_program_refreshes_for_less(program: Program, hers: Client) -> None:
    """What it asks, if that is less; the refresh token stays good for all of it."""
    token = sign_in(program, hers)["refresh_token"]
    for asked, scope, only_reads in (
        ("mcp:read", "mcp:read", True),
        ("mcp:read offline_access", "mcp:read", True),
        ("", "mcp:read mcp:change", False),
        ("mcp:change", "mcp:read mcp:change", False),
    ):
        answer = program.refresh(token, **({"scope": asked} if asked else {})).json()
        token = answer["refresh_token"]
        assert answer["scope"] == scope, asked
        name = digest(answer["access_token"])
        granted = read_keys([name])[name].principal.scope
        assert bool(granted and granted.read_only) is only_reads, asked


def test_what_is_for_one_server_gets_nothing_for_another(
    program: Program, hers: Client
) -> None:
    program.register()
    code = answer_in(allow(hers, program.request()))["code"]
    published(Server(slug="sales", access="oauth token"))
    for other in (f"{ORIGIN}/mcp/sales", "https://evil.example/mcp/support"):
        refused = program.exchange(code, resource=other)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    token = program.exchange(code, resource=RESOURCE).json()["refresh_token"]
    for other in (f"{ORIGIN}/mcp/sales", "https://evil.example/mcp/support"):
        refused = program.refresh(token, resource=other)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    assert program.refresh(token, resource=RESOURCE).status_code == 200


def test_nothing_that_a_program_shows_is_stored(program: Program, hers: Client) -> None:
    program.register()
    code = answer_in(allow(hers, program.request()))["code"]
    first = program.exchange(code).json()
    second = program.refresh(first["refresh_token"]).json()
    rows = [
        *AccessToken.objects.values(),
        *Connection.objects.values(),
        *IssuedToken.objects.values(),
    ]
    assert len(rows) == 4
    for answer in (first, second):
        for name in ("access_token", "refresh_token"):
            assert answer[name] not in str(rows)
    assert code not in str(rows)


def test_the_end_of_an_app_by_its_program(program: Program, hers: Client) -> None:
    answer = sign_in(program, hers)
    assert program.post("revoke", token=answer["refresh_token"]).status_code == 200
    assert Connection.objects.get().ended == "client"
    assert AccessToken.objects.get().revoked is not None
    refused = program.refresh(answer["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("shown", ["access_token", "refresh_token"])
def test_a_program_ends_no_app_of_another(
    program: Program, hers: Client, shown: str
) -> None:
    answer, other = sign_in(program, hers), Program(Client())
    other.register(client_name="Another")
    assert other.post("revoke", token=answer[shown]).status_code == 200
    assert AccessToken.objects.get().revoked is None
    assert program.refresh(answer["refresh_token"]).status_code == 200


def test_a_code_that_is_used_twice_ends_the_app(program: Program, hers: Client) -> None:
    program.register()
    code = answer_in(allow(hers, program.request()))["code"]
    assert program.exchange(code, code_verifier="w" * 43).status_code == 400
    assert program.exchange(code).status_code == 200
    # A wrong attempt changes nothing.
    assert program.exchange(code, code_verifier="w" * 43).status_code == 400
    assert AccessToken.objects.get().revoked is None
    again = program.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert Connection.objects.get().ended == "code"
    assert AccessToken.objects.get().revoked is not None


def test_a_refresh_token_sent_twice_is_the_same(program: Program, hers: Client) -> None:
    first = sign_in(program, hers)["refresh_token"]
    answers = [program.refresh(first).json() for _ in range(3)]
    assert len({each["refresh_token"] for each in answers}) == 1
    assert len({each["access_token"] for each in answers}) == 3
    assert AccessToken.objects.get().revoked is None


def test_machines(program: Program, ana: User, support: Server) -> None:
    row, token = AccessToken.objects.make(user=ana, name="a job", servers=[support])
    sent = {
        "grant_type": "client_credentials",
        "client_id": row.prefix,
        "client_secret": str(token),
        "resource": f"{ORIGIN}/mcp/support",
        "scope": "mcp:read",
    }
    answer = program.post(**sent).json()
    assert answer == {
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": 3_600,
        "scope": "mcp:read",
    }
    wrong = program.post(**{**sent, "client_secret": f"{token}x"})
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    # RFC 6749, section 5.2.
    assert wrong["WWW-Authenticate"] == 'Basic realm="mcp"'
    elsewhere = program.post(**{**sent, "resource": f"{ORIGIN}/mcp/sales"})
    assert elsewhere.json()["error"] == "invalid_target"
    assert "WWW-Authenticate" not in elsewhere
    row.revoke()
    ended = program.post(**sent)
    assert (ended.status_code, ended.json()["error"]) == (401, "invalid_client")


def test_a_content_length_that_no_int_takes(program: Program) -> None:
    for path in ("token", "revoke", "register"):
        response = program.http.post(
            f"/mcp-oauth/{path}",
            "a=b",
            content_type="application/x-www-form-urlencoded",
            CONTENT_LENGTH="9" * 5_000,
        )
        assert response.status_code == 413


def test_an_app_that_is_deleted_while_it_is_asked_for(
    program: Program, hers: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = connections.lock

    def late(connection: Connection) -> Connection | None:
        AccessToken.objects.all().delete()
        return lock(connection)

    answer = sign_in(program, hers)
    with monkeypatch.context() as patched:
        patched.setattr(connections, "lock", late)
        response = program.refresh(answer["refresh_token"])
    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")
    answer = sign_in(program, hers)
    token = AccessToken.objects.latest("pk")
    monkeypatch.setattr(connections, "lock", late)
    assert program.post("revoke", token=answer["refresh_token"]).status_code == 200
    assert not Connection.objects.exists()
    assert rights.end_connected_apps([token], lambda _: Connection.Ended.PERSON) == []


@contextmanager
def reports() -> Iterator[list[str]]:
    """Collect the error pages and mails of requests that fail."""
    found: list[str] = []

    def collect(sender: object, request: Any = None, **_: object) -> None:
        reporter = ExceptionReporter(request, *sys.exc_info())
        found.extend([reporter.get_traceback_html(), reporter.get_traceback_text()])

    got_request_exception.connect(collect)
    try:
        yield found
    finally:
        got_request_exception.disconnect(collect)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("place", ["_lock_open", "_check_open", "_are_too_many"])
def test_no_error_page_has_a_secret(
    program: Program,
    hers: Client,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    place: str,
    debug: bool,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("This is a fault.")

    settings.DEBUG = debug
    token = sign_in(program, hers)["refresh_token"]
    code = answer_in(allow(hers, program.request()))["code"]
    monkeypatch.setattr(connections, place, fail)
    program.http.raise_request_exception = False
    with reports() as found:
        assert program.exchange(code).status_code == 500
        assert program.refresh(token).status_code == 500
    assert len(found) == 4
    for each in found:
        assert "This is a fault." in each
        assert not re.search(r"mcp_(?:ac|at|rt)_\w{9}", each)
        assert "v" * 43 not in each


def test_no_error_page_has_what_stands_in_the_address(
    program: Program, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Servers put the address into more than one place, and middleware reads it."""

    def fail(*_: object) -> None:
        raise RuntimeError("This is a fault.")

    class Reading:
        def __init__(self, get_response: Any) -> None:
            self._get_response = get_response

        def __call__(self, request: Any) -> Any:
            assert request.GET["code"] == "a-canary"
            return self._get_response(request)

    monkeypatch.setattr(endpoints, "issuer_of", fail)
    monkeypatch.setattr(endpoints, "ReadingMiddleware", Reading, raising=False)
    path = f"{endpoints.__name__}.ReadingMiddleware"
    settings.MIDDLEWARE = [path, *settings.MIDDLEWARE]
    client = Client(raise_request_exception=False)
    address = "/mcp-oauth/token?code=a-canary"
    with reports() as found:
        for name in ("RAW_URI", "REQUEST_URI"):
            places: Any = {name: address}
            assert client.post(address, {}, **places).status_code == 500
    assert len(found) == 4
    for each in found:
        assert "This is a fault." in each
        assert "a-canary" not in each


def test_so_many_programs_are_served_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers leave the database connections to others, who try again."""
    entered, go = threading.Semaphore(0), threading.Event()

    def wait(_request: object) -> str:
        entered.release()
        assert go.wait(PATIENCE_S)
        return ORIGIN

    def revoke() -> Any:
        return Client().post("/mcp-oauth/revoke", {"token": "made-up"})

    monkeypatch.setattr(endpoints, "issuer_of", wait)
    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as pool:
        served = [pool.submit(revoke) for _ in range(MAX_CONCURRENT_REQUESTS)]
        for _ in served:
            assert entered.acquire(timeout=PATIENCE_S)
        refused = revoke()
        go.set()
        # It has a form that no program sends.
        assert {each.result().status_code for each in served} == {400}
    assert (refused.status_code, refused["Retry-After"]) == (503, "2")
    assert json.loads(refused.content) == {
        "error": "temporarily_unavailable",
        "error_description": (
            "16 programs are being served already. Try again in 2 seconds."
        ),
    }
    assert revoke().status_code == 400
