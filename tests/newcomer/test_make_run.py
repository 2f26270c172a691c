"""`make run`, as a newcomer sees it.

The virtual environment is there already: a clone that makes its own takes minutes.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.drill.ports import claimed, free_port
from tests.newcomer.demo import PASSWORD, demo, password, refused


@pytest.mark.covers("L-HTTP-007", "S-HTTP-006")
def test_what_it_prints_is_true(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    with demo(database) as served:
        assert f"MCP endpoint   {served.url}/mcp\n" in served.output
        assert f"Admin          {served.url}/admin/\n" in served.output
        assert f"--transport http demo {served.url}/mcp\n" in served.output
        assert httpx.get(served.url).status_code == 200
        # Another address of this machine: nobody serves there.
        with pytest.raises(httpx.ConnectError):
            httpx.get(served.url.replace("127.0.0.1", "127.0.0.2"))
        assert logs_in(served.url, password(served))
        assert listed(served.url) == {"current_time", "roll_dice", "book_table"}
    with demo(database) as served:
        assert f"MCP endpoint   {served.url}/mcp\n" in served.output
        assert not PASSWORD.search(served.output)


def listed(url: str) -> set[str]:
    """Return the names of the tools that the endpoint lists."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "newcomer", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    answer = httpx.post(
        f"{url}/mcp",
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/list",
        },
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/list",
            "params": {"_meta": meta},
        },
    )
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


def logs_in(url: str, shown: str) -> bool:
    """Whether the admin takes the password."""
    with httpx.Client(base_url=url, follow_redirects=True) as browser:
        browser.get("/admin/")
        form = {
            "username": "admin",
            "password": shown,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            "next": "/admin/mcp_app/prompt/",
        }
        page = browser.post("/admin/login/", data=form)
    return "answer_a_complaint" in page.text


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    port = free_port()
    with closing(claimed(port)):
        said = refused(port, database)
    assert f"Another program uses the port {port} of 127.0.0.1." in said
    assert f"make run PORT={port + 1}" in said
    assert not database.exists()


@pytest.mark.parametrize("port", ["", "web", "0", "65536", "80 80"])
def test_what_is_no_port(port: str, tmp_path: Path) -> None:
    said = refused(port, tmp_path / "demo.sqlite3")
    assert f"PORT={port} is no port: it must be a number from 1 to 65535." in said
