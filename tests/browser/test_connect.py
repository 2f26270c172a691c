"""Connecting clients by what the page *Connect* gives, and seeing that it works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import CLOSED
from tests.browser.inspector import PROGRAM
from tests.browser.test_publishing import picture, press, tab
from tests.browser.test_tokens import ALREADY, MAKE, shown
from tests.clients.node import node, report_of
from tests.newcomer.programs import Serving

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

WAITING: Final = "Nothing came in with this token yet."
# At a time, or on a date if midnight has passed since.
CAME: Final = "Something came in with this token"


def choose(page: Page, client: str) -> None:
    clients = page.get_by_role("navigation", name="Clients")
    clients.get_by_role("link", name=client, exact=True).click()
    page.get_by_role("heading", name=f"2. Connect {client}").wait_for()


def inspected(line: str, home: Path) -> list[str]:
    words = shlex.split(line)
    assert words[:5] == ["claude", "mcp", "add", "--transport", "http"]
    _name, url, header, value = words[5:]
    ended = node(
        *(PROGRAM, "--cli", url, "--transport", "http", header, value),
        *("--format", "json", "--method", "tools/list"),
        HOME=str(home),
    )
    assert ended.returncode == 0, ended.stderr
    return [tool["name"] for tool in json.loads(ended.stdout)["result"]["tools"]]


def test_clients_get_in_by_what_the_page_gives(
    keeper: Page, served: Serving, tmp_path: Path
) -> None:
    page = keeper
    page.goto("/admin/mcp_app/server/")
    page.get_by_role("link", name=f"/mcp/{CLOSED}").click()
    tab(page, "Connect")
    address = page.locator("#mcp-address")
    expect(address).to_have_text(f"{served.url}/mcp/{CLOSED}")

    choose(page, "VS Code")
    press(page, MAKE)
    token = shown(page)
    expect(page.get_by_text(WAITING)).to_be_visible()
    file = tmp_path / "mcp.json"
    file.write_text(page.locator("#mcp-text").inner_text(), encoding="utf-8")
    assert token not in file.read_text()
    [tools] = report_of("vscode.mjs", str(file), TOKEN=token).values()
    assert "order_status" in tools
    # Nobody presses anything: the page asks by itself.
    expect(page.get_by_text(CAME)).to_be_visible()
    expect(page.get_by_text("It is vscode 1.0.0, which speaks the")).to_be_visible()
    page.reload()
    expect(page.get_by_text(ALREADY)).to_be_visible()
    assert token not in page.content()
    expect(page.get_by_text(CAME)).to_be_visible()

    choose(page, "Claude Code")
    picture(page, "connect")
    press(page, MAKE)
    line = page.locator("#mcp-line").inner_text()
    assert inspected(line, tmp_path) == tools
    expect(page.get_by_text(CAME)).to_be_visible()
    page.locator("[data-mcp-live]").scroll_into_view_if_needed()
    picture(page, "connect-works")


@pytest.mark.long
def test_it_stops_asking_after_ten_minutes(keeper: Page) -> None:
    page = keeper
    asked: list[str] = []
    page.on("request", lambda each: asked.append(each.url))
    page.clock.install()
    page.goto("/admin/mcp_app/server/")
    page.get_by_role("link", name=f"/mcp/{CLOSED}").click()
    tab(page, "Connect")
    press(page, MAKE)
    expect(page.get_by_text(WAITING)).to_be_visible()
    with page.expect_response("**part=contact"):
        page.clock.run_for(3_000)
    for _ in range(10):
        page.clock.run_for(60_000)
    expect(page.get_by_role("button", name="Live")).to_have_count(0)
    status = page.locator("[data-mcp-live-status]")
    expect(status).to_contain_text("Press “Refresh”.")
    before = len(asked)
    page.clock.run_for(60_000)
    assert len(asked) == before


@pytest.mark.long
def test_without_scripts(scriptless_keeper: Page) -> None:
    page = scriptless_keeper
    page.goto("/admin/mcp_app/server/")
    page.get_by_role("link", name=f"/mcp/{CLOSED}").click()
    tab(page, "Connect")
    choose(page, "Codex")
    press(page, MAKE)
    token = shown(page)
    assert token in page.locator("#mcp-text").inner_text()
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_text(WAITING)).to_be_visible()
    assert token not in page.content()
