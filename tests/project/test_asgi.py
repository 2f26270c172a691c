"""The project's ASGI application: the endpoint, and Django behind."""

from __future__ import annotations

from mcp_app.process.runtime import Process
from mcp_project.asgi import application
from tests.asgi_client import Client, Visit
from tests.scripting import STATELESS
from tests.wire.middleware import WireCheck


async def test_the_endpoint_and_the_site(process: Process) -> None:
    checked = WireCheck(application)
    found = await Client(checked, STATELESS).request("tools/list")
    assert found.result["tools"]
    visit = Visit(checked, "GET", "/nowhere", [("host", "localhost")])
    await visit.body()
    assert visit.status == 404
    assert visit.headers["Content-Type"].startswith("text/html")
