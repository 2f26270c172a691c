"""The endpoint as a view: what a site does to its views does nothing to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, cast

import pytest
from asgiref.sync import SyncToAsync
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpRequest, HttpResponseBase
from django.test import Client as Browser
from django.urls import include, path, set_script_prefix
from pytest_django import Settings

from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.transports.http_sse.sse_handler import MessagesHandler
from tests.marks import NEWEST_FIRST
from tests.old_client import OldClient
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect
from tests.streams.logging_rows import message_of, until
from tests.wire.middleware import Application, WireCheck

Site = dict[str, Any]


def use(name: str, *, first: bool = False) -> Site:
    """Return settings with a middleware inside of the site's own ones, or around."""
    from mcp_project.settings import MIDDLEWARE  # noqa: PLC0415 - settings are read

    return {"MIDDLEWARE": [name, *MIDDLEWARE] if first else [*MIDDLEWARE, name]}


def plain_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Knows nothing of coroutines, as many that sites have written."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response["X-Site"] = "there"
        return response

    return middleware


HABITS: Final[dict[str, Callable[[], Site]]] = {
    "nothing": dict,
    "csrf": lambda: use("django.middleware.csrf.CsrfViewMiddleware"),
    "login": lambda: use("django.contrib.auth.middleware.LoginRequiredMiddleware"),
    "gzip": lambda: use("django.middleware.gzip.GZipMiddleware", first=True),
    "etags": lambda: use("django.middleware.http.ConditionalGetMiddleware", first=True),
    "sync": lambda: use(f"{__name__}.plain_middleware"),
    "slashes": lambda: {"APPEND_SLASH": True},
    "no slashes": lambda: {"APPEND_SLASH": False},
    "small uploads": lambda: {"DATA_UPLOAD_MAX_MEMORY_SIZE": 1},
    "uploads on disk": lambda: {"FILE_UPLOAD_MAX_MEMORY_SIZE": 0},
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the connections of what middleware has asked."""
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture
def habit() -> str:
    return "nothing"


@pytest.fixture
def application(
    process: Process, settings: Settings, habit: str
) -> Iterator[WireCheck]:
    """The site without the endpoint in front of it; what it sends is checked."""
    for name, value in HABITS[habit]().items():
        setattr(settings, name, value)
    check = WireCheck(cast("Application", ASGIHandler()))
    yield check
    assert check.violations == []


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_calls_and_streams(connect: Connect, version: str, habit: str) -> None:
    client = await connect(version)
    assert (await client.call("drill_add", a=1, b=2)).text == "3"
    assert (await client.call("drill_add_sync", a=1, b=2)).text == "3"
    assert "tools" in (await client.request("tools/list")).result
    counted = await client.request(
        "tools/call",
        {
            "name": "drill_count",
            "arguments": {"n": 3, "delay_ms": 0},
            "_meta": {"progressToken": 7},
        },
    )
    assert len(counted.notifications("notifications/progress")) == 3
    assert counted.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("habit", HABITS)
async def test_streams_are_told_of_changes_at_once(connect: Connect) -> None:
    stateful = await connect(STATEFUL)
    # Whole answers may be compressed; a stream would be held.
    stateful._headers["accept-encoding"] = "gzip"
    standing = await (await stateful.standing()).opened()
    await stateful.call("test_trigger_tool_change")
    message = await message_of(standing)
    assert message["method"] == "notifications/tools/list_changed"
    await standing.leave()


@pytest.mark.parametrize("habit", HABITS)
async def test_the_old_transport(application: WireCheck) -> None:
    client = OldClient(application, headers={"accept-encoding": "gzip"})
    await client.open()
    assert (await client.call("drill_add", a=1, b=2)).text == "3"
    assert (await client.call("test_trigger_tool_change")).result
    await client.told("notifications/tools/list_changed")
    await client.leave()


@pytest.mark.parametrize("habit", ["nothing", "sync", "gzip"])
async def test_a_client_that_leaves_ends_its_call(
    connect: Connect, process: Process
) -> None:
    client = await connect(STATELESS)
    arguments = {"name": "drill_sleep", "arguments": {"seconds": 60}}
    before = client.begin("tools/call", arguments)
    await until(lambda: len(process.running))
    await before.leave()
    await until(lambda: not len(process.running))


async def test_a_large_body_is_refused_by_the_endpoint(
    connect: Connect, process: Process
) -> None:
    client = await connect(STATELESS)
    visit = client.visit("POST", b"x" * (process.limits.body + 1))
    await visit.body()
    assert visit.status == 413


async def test_functions_are_atomic_and_the_view_is_not(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    client = await connect(STATELESS)
    assert (await client.call("drill_add_sync", a=1, b=2)).text == "3"


@pytest.fixture
def below_a_prefix(settings: Settings) -> None:
    """The endpoint is at /api/mcp."""
    urls = ModuleType("urls_below_a_prefix")
    urls.urlpatterns = [path("api/", include("mcp_app.urls"))]  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = urls


@pytest.mark.usefixtures("below_a_prefix")
async def test_a_prefix_in_the_urlconf(connect: Connect) -> None:
    client = await connect(STATEFUL, path="/api/mcp")
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_a_script_name(connect: Connect, settings: Settings) -> None:
    settings.FORCE_SCRIPT_NAME = "/site"
    try:
        client = await connect(STATEFUL, path="/mcp")
        assert (await client.call("drill_add", a=1, b=2)).text == "3"
    finally:
        set_script_prefix("/")


def test_a_foreign_host(client: Browser) -> None:
    assert client.get("/mcp", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.parametrize("address", ["/mcp/sse", "/mcp/messages?session_id=a"])
async def test_a_site_without_streams_has_no_error_to_tell(
    process: Process,
    client: Browser,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    """Django would log what it answers as an error, which it mails to people."""
    monkeypatch.setattr(background, "_loop", process.loop)
    response = await asyncio.to_thread(client.get, address)
    assert response.status_code == 501
    path = address.partition("?")[0]
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", f"Not Implemented: {path}")
    ]


async def test_what_django_logs_has_no_id_of_a_session(
    process: Process, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It mails the whole request to the site's people where a response is an error."""
    client = await OldClient(WireCheck(cast("Application", ASGIHandler()))).open()
    with monkeypatch.context() as patched:
        patched.setattr(process, "stopping", True)
        # Otherwise the error would come on the stream.
        patched.setattr(MessagesHandler, "_logged", False)
        assert (await client.sent(client.message("ping"))).status == 503
    session_id = client.messages.partition("=")[2]
    await client.leave()
    logged: list[Any] = [each for each in caplog.records if hasattr(each, "request")]
    assert [each.getMessage() for each in logged] == [
        "Service Unavailable: /mcp/messages"
    ]
    for each in logged:
        assert session_id not in each.request.build_absolute_uri()
        assert session_id not in str(each.request.META)
        assert not each.request.GET
