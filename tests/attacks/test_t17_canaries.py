"""T17: whatever is secret stands in no log, no row and no page that tells of an error.

Real servers at DEBUG, in front of Django, and within it with Django's own DEBUG:
clients of both eras and of HTTP+SSE call, fail, crash, ask and are refused, and a
program signs in.  Secrets are tokens (good, wrong, and in the address), codes, keys and
refresh tokens of apps, passwords, cookies, ids of sessions, request state, cursors,
arguments, answers of people, and the site's key with what is derived from it.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.views.debug import ExceptionReporter
from pytest_django import Settings

import mcp_app.asgi
from mcp_app.logs import JsonFormatter
from mcp_app.process.loading import Catalogs
from mcp_app.process.runtime import Process
from tests.asgi_client import Client as McpClient
from tests.attacks.canaries import (
    ANSWER,
    ARGUMENT,
    BASIC,
    COOKIE,
    SECRET_KEY,
    WRONG,
    Canaries,
    Client,
    keys,
    rows,
)
from tests.attacks.signing_in import ORIGIN, PASSWORD, signs_in
from tests.drill.databases import prepared_file
from tests.drill.running import THERE, started
from tests.process.clusters import run_python
from tests.wire.middleware import WireCheck

PREPARE: Final = f"""
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import AccessToken, Server
from tests.published import published
ana = User.objects.create_superuser("ana", password="{PASSWORD}")
published(Server(slug="by-token", access="token oauth"))
published(Server(slug="paged", access="token", page_size=2))
print(AccessToken.objects.make(user=ana, name="laptop", may="change")[1])
"""
SITES: Final = {
    "in front of Django": {"MOUNT": "consumer"},
    "within Django": {"MOUNT": "view", "DEBUG": "true"},
}
LOGGED: Final = {
    "LOG_ROOT": "DEBUG",
    "LOG_LEVEL": "DEBUG",
    "LOG_FORMAT": "json",
    "WIRE": "",
}


def environment(database: Path, **more: str) -> dict[str, str]:
    ways = {
        "token": "mcp_app.authentication.access_token",
        "oauth": "mcp_app.authentication.oauth",
    }
    return {
        "DATABASE_URL": f"sqlite:///{database}",
        "SECRET_KEY": SECRET_KEY,
        "MCP_AUTHENTICATION": json.dumps(ways),
        "MCP_PUBLIC_URL": ORIGIN,
        "MCP_HOSTS": "127.0.0.1",
        **THERE,
        **LOGGED,
        **more,
    }


@pytest.mark.parametrize("site", SITES)
def test_no_secret_is_written_anywhere(tmp_path: Path, site: str) -> None:
    database = tmp_path / "db.sqlite3"
    shutil.copy(prepared_file(), database)
    env = environment(database, **SITES[site])
    token = run_python(env, "-c", PREPARE).strip()
    canaries = Canaries()
    for kind, text in (
        *(("token", each) for each in (token, WRONG, BASIC)),
        *(("cookie", each) for each in (COOKIE,)),
        *(("argument", ARGUMENT), ("answer", ANSWER), ("password", PASSWORD)),
        *(("key", each) for each in keys(SECRET_KEY)),
    ):
        canaries.note(kind, text)
    server = started("uvicorn", env)
    try:
        client = Client(f"{server.url}/by-token", token, canaries)
        client.stateful()
        client.refused()
        client.old()
        client.stateless()
        signs_in(server.url, token, canaries)
        status = server.stop()
    finally:
        server.kill() if server.process.poll() is None else None
    assert status == 0
    judge(canaries, server.output, database)


def judge(canaries: Canaries, output: str, database: Path) -> None:
    """Look for each canary everywhere; what was asked of the server is there."""
    # It was at DEBUG, and has something to say: else nothing would be shown.
    assert "This exception was ordered by the caller." in output
    assert "in the address" in output
    assert '"level": "DEBUG"' in output
    assert len(canaries.errors) > 40
    found = [
        *canaries.found("the log", output.encode()),
        *(
            each
            for table, content in rows(database).items()
            for each in canaries.found(f"a row of {table}", content)
        ),
        *(
            each
            for said in canaries.errors
            for each in canaries.found(f"an error: {said!r:.300}", said)
        ),
    ]
    assert found == [], f"{found}\n{output[-3000:]}"


@pytest.fixture
def application(process: Process, within: bool) -> Iterator[WireCheck]:
    """The site with the endpoint in front of it, or within it."""
    site: Any = ASGIHandler()
    check = WireCheck(site if within else mcp_app.asgi.application(site))
    yield check
    assert check.violations == []


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("within", [True, False])
async def test_a_crash_of_ours_tells_no_secret(
    application: WireCheck,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    debug: bool,
    within: bool,
) -> None:
    """Nor do the pages and mails that Django makes of a request that failed."""
    settings.DEBUG = debug
    canaries = Canaries()
    secrets = {
        "authorization": f"Bearer {WRONG}",
        "cookie": f"sessionid={COOKIE}",
        "mcp-session-id": "canary-session",
        "mcp-param-region": ARGUMENT,
    }
    for text in (WRONG, COOKIE, "canary-session", ARGUMENT):
        canaries.note("secret", text)

    def broken(self: Catalogs, slug: str) -> None:
        raise RuntimeError("This was not expected.")

    monkeypatch.setattr(Catalogs, "serving", broken)
    caplog.set_level(logging.DEBUG)
    path = f"/mcp?access_token={WRONG}"
    client = McpClient(application, "2025-11-25", path=path, headers=secrets)
    found = await client.call("drill_echo", value=ARGUMENT)
    assert found.status == 500
    mailed = [
        page
        for record in caplog.records
        if (request := getattr(record, "request", None)) is not None
        for reporter in [ExceptionReporter(request, None, None, None)]
        for page in (reporter.get_traceback_html(), reporter.get_traceback_text())
    ]
    formatted = [JsonFormatter().format(each) for each in caplog.records]
    # In front of Django nothing of Django's sees the request.
    assert bool(mailed) is within
    assert any("This was not expected." in each for each in formatted)
    for said in (found.raw.decode(), *mailed, *formatted, caplog.text):
        assert canaries.found("what was told", said.encode()) == []


def test_a_canary_would_be_found() -> None:
    canaries = Canaries()
    canaries.note("token", "mcp_a+b")
    for said in (b"x mcp_a+b x", b"mcp_a%2Bb", b"bWNwX2ErYg", b"6d63705f612b62"):
        assert canaries.found("here", said) == ["token 0 in here"]
    assert canaries.found("here", b"mcp_a") == []
