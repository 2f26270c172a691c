"""Which paths are the endpoint's, and which are the site's."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Final
from urllib.parse import unquote

import pytest
from django.test import override_settings
from django.urls import include, path

import mcp_app.asgi
from mcp_app.asgi import Switch
from tests.asgi_client import Client, Visit, outcome
from tests.scripting import STATELESS
from tests.wire.middleware import WireCheck

PATHS = [
    ("/mcp", "default"),
    ("/mcp/", "default"),
    ("/mcp/staff", "staff"),
    ("/mcp/staff/", "staff"),
    ("/mcp/sse", ("default", "sse")),
    ("/mcp/sse/", ("default", "sse")),
    ("/mcp/messages", ("default", "messages")),
    ("/mcp/staff/sse", ("staff", "sse")),
    ("/mcp/staff/messages/", ("staff", "messages")),
    ("/mcp/sse/sse", ("sse", "sse")),
    ("/mcp//sse", None),
    ("/mcp/staff/sse/more", None),
    ("/mcp/health", "health"),
    ("/mcp/health/", "health"),
    ("/mcp/ä", None),
    ("/mcp//", None),
    ("/mcp/staff//", None),
    ("/mcp/staff/tools", None),
    ("/mcp2", None),
    ("/MCP", None),
    ("/", None),
    ("", None),
    ("/admin/mcp", None),
]


class Site:
    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)


def named(path: str, root_path: str = "") -> object:
    switch = mcp_app.asgi.application(Site())
    assert isinstance(switch, Switch)
    place = switch.find_place(root_path, path)
    return place and (place if place[1] else place[0])


@pytest.mark.parametrize(("path", "slug"), PATHS)
def test_paths(path: str, slug: object) -> None:
    assert named(path) == slug


@pytest.mark.parametrize(
    ("root", "path", "slug"),
    [
        ("/app", "/app/mcp", "default"),
        ("/app/", "/app/mcp/staff", "staff"),
        ("/app", "/mcp/staff", "staff"),
        ("/app", "/application/mcp", None),
        ("/app", "/app", None),
        ("/mcp", "/mcp/mcp", "default"),
        ("/", "/mcp", "default"),
        ("", "/mcp", "default"),
    ],
)
def test_a_root_path(root: str, path: str, slug: object) -> None:
    """Some servers leave it in the path, and others do not."""
    assert named(path, root) == slug


class Included:
    urlpatterns = [path("api/v1/", include("mcp_app.urls"))]


class Without:
    urlpatterns: list[Any] = []


@pytest.mark.parametrize(
    ("urlconf", "path", "slug"),
    [
        (Included, "/api/v1/mcp", "default"),
        (Included, "/api/v1/mcp/staff/", "staff"),
        (Included, "/mcp", None),
        (Without, "/mcp", None),
    ],
)
def test_paths_come_from_the_urlconf(
    urlconf: type, path: str, slug: str | None
) -> None:
    with override_settings(ROOT_URLCONF=urlconf):
        assert named(path) == slug


def test_servers_see_that_it_is_asgi() -> None:
    assert inspect.iscoroutinefunction(Switch.__call__)


def test_many_paths_are_not_remembered_for_ever() -> None:
    switch = mcp_app.asgi.application(Site())
    assert isinstance(switch, Switch)
    for number in range(mcp_app.asgi.MAX_CACHED_PATHS + 1):
        switch.find_place("", f"/{number}")
    assert len(switch._places) == 1


async def test_lifespan_is_the_sites() -> None:
    site = Site()
    scope = {"type": "lifespan"}
    await mcp_app.asgi.application(site)(scope, None, None)  # type: ignore[arg-type]
    assert site.scopes == [scope]


async def test_the_sites_own_paths_go_to_the_site() -> None:
    site = Site()
    scope = {"type": "http", "path": "/shop", "root_path": ""}
    await mcp_app.asgi.application(site)(scope, None, None)  # type: ignore[arg-type]
    assert site.scopes == [scope]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/pages", "/mcp/pages/"])
async def test_the_endpoint_answers_with_and_without_a_slash(
    application: WireCheck, path: str
) -> None:
    client = Client(application, STATELESS, path=path)
    assert (await client.request("tools/list")).result["tools"]


@pytest.mark.parametrize("end", ["", "/"])
async def test_no_such_server_is_a_404_in_json_and_no_redirect(
    application: WireCheck, end: str
) -> None:
    client = Client(application, STATELESS, path=f"/mcp/unheard-of{end}")
    for visit in (client.visit("GET"), client.begin("tools/list")):
        found = await outcome(visit)
        assert found.status == 404
        assert found.headers["content-type"] == "application/json"
        assert found.error["message"] == "There is no MCP server 'unheard-of' here."


NEEDLESS: Final = (
    *("/%6dcp", "/mc%70/pages", "/mcp%2fpages", "/mcp%2Fpages", "/mcp/p%61ges"),
    *("/mcp/%73se", "/mcp/%68ealth", "/mcp%2f"),
)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", NEEDLESS)
async def test_an_address_that_encodes_needlessly_is_none(
    application: WireCheck, path: str, method: str
) -> None:
    """Servers decode it: a proxy that guards a path may not have."""
    client = Client(application, STATELESS, path=unquote(path))
    visit = client.visit(method)
    # The task that serves it has not begun.
    visit.scope["raw_path"] = path.encode()
    found = await outcome(visit)
    assert found.status == 404
    assert found.error["message"] == f"There is no MCP server '{path}' here."


@pytest.mark.parametrize("sent", ["/mcp/p%C3%A4ges", "/mcp/a%3Ab", "/mcp/%2", None])
async def test_what_is_encoded_where_it_must_be_is_only_looked_up(
    application: WireCheck, sent: str | None
) -> None:
    client = Client(application, STATELESS, path="/mcp/unheard-of")
    visit = client.begin("tools/list")
    # Not every server tells how a path was sent.
    visit.scope.pop("raw_path")
    if sent is not None:
        visit.scope["raw_path"] = sent.encode()
    found = await outcome(visit)
    assert found.error["message"] == "There is no MCP server 'unheard-of' here."


async def test_the_site_behind_is_unchanged(application: WireCheck) -> None:
    visit = Visit(application, "GET", "/nowhere", [("host", "localhost")])
    await visit.body()
    assert visit.status == 404
    assert visit.headers["Content-Type"].startswith("text/html")


async def socket(path: str) -> tuple[Site, list[Any]]:
    site, sent = Site(), []
    opened = {"type": "websocket", "path": path, "headers": []}

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await mcp_app.asgi.application(site)(opened, receive, send)
    return site, sent


@pytest.mark.parametrize("address", ["/mcp", "/mcp/staff", "/mcp/sse"])
async def test_no_websocket_is_the_endpoints(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site, sent = await socket(address)
    assert sent == [{"type": "websocket.close"}]
    assert site.scopes == []
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


async def test_websockets_of_the_site_are_its_own() -> None:
    site, sent = await socket("/chat")
    assert [each["path"] for each in site.scopes] == ["/chat"]
    assert sent == []
