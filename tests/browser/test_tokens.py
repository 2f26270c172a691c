"""Access tokens as people make them: seen once, used, deleted; a page of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import CLOSED, PASSWORD, open_page
from tests.browser.test_consent import strictly
from tests.browser.test_publishing import add_user, picture, press, said
from tests.newcomer.programs import CHECKOUT, Serving

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

MAKE: Final = "Make a token and show it once"
USER: Final = "maria-the-user"
ALREADY: Final = "This token was already shown."


@pytest.fixture
def server(served: Serving) -> str:
    return f"{served.url}/mcp/{CLOSED}"


def call(url: str, token: str) -> httpx.Response:
    sent = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "order_status",
            "arguments": {"number": 1_001},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "order_status",
    }
    return httpx.post(url, content=json.dumps(sent), headers=headers)


def shown(page: Page) -> str:
    expect(page.get_by_text("Your token. It is shown only now.")).to_be_visible()
    return page.locator("#mcp-token").inner_text()


def good(url: str, token: str) -> None:
    answer = call(url, token)
    assert answer.status_code == 200, answer.text
    assert "error" not in answer.json(), answer.text


def look(page: Page, name: str) -> None:
    picture(page, name, CHECKOUT / "results" / "pictures")


def fill_in(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("For tokens").check()


def not_shown_again(page: Page, token: str) -> None:
    page.reload()
    expect(page.get_by_text(ALREADY)).to_be_visible()
    assert token not in page.content()
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_text("cannot be shown again")).to_be_visible()
    assert token not in page.content()


def copied(page: Page) -> str:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "Copy the token")
    expect(page.locator("#mcp-token-copied")).to_have_text("Copied.")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_token_is_made_seen_once_used_and_deleted(staff: Page, server: str) -> None:
    staff.goto("/admin/mcp_app/")
    staff.get_by_role("link", name="Access tokens", exact=True).first.click()
    staff.get_by_role("link", name="Add access token").first.click()
    look(staff, "token-add")
    fill_in(staff, "Claude Code on my laptop")
    press(staff, MAKE)
    token = shown(staff)
    picture(staff, "token-shown")
    line = staff.locator("#mcp-line").inner_text()
    assert f'"Authorization: Bearer {token}"' in line
    assert server in line
    assert copied(staff) == token
    good(server, token)
    not_shown_again(staff, token)
    look(staff, "token")

    staff.get_by_role("link", name="Replace…").click()
    look(staff, "token-replace")
    press(staff, MAKE)
    second = shown(staff)
    good(server, second)
    good(server, token)
    staff.get_by_role("link", name="I have copied the token").click()
    look(staff, "tokens")
    staff.get_by_role("link", name="Claude Code on my laptop").last.click()
    press(staff, "Delete now")
    said(staff, "lets nobody in any more.")
    assert call(server, token).status_code == 401
    good(server, second)
    look(staff, "token-ended")


def test_the_code_of_a_link_leaves_the_address(staff: Page) -> None:
    staff.goto("/account/tokens/link/#link_abc")
    expect(staff.get_by_label("The link")).to_have_value("link_abc")
    assert staff.url.endswith("/account/tokens/link/")
    look(staff, "token-take")


@pytest.mark.long
def test_what_is_wrong_is_told_where_it_is(staff: Page) -> None:
    staff.goto("/admin/mcp_app/accesstoken/add/")
    fill_in(staff, "wrong")
    staff.get_by_text("Limits by network, tag and tool").click()
    staff.get_by_label("Allowed networks").fill("home")
    press(staff, MAKE)
    expect(staff.get_by_text("“home” is not a network")).to_be_visible()
    look(staff, "token-wrong")


@pytest.mark.long
def test_without_scripts(scriptless: Page) -> None:
    page = scriptless
    page.goto("/admin/mcp_app/accesstoken/add/")
    page.get_by_label("Name").fill("no scripts")
    press(page, MAKE)
    token = shown(page)
    expect(page.get_by_role("button", name="Copy the token")).to_have_count(0)
    page.goto("/admin/mcp_app/accesstoken/")
    page.get_by_role("link", name="no scripts").click()
    press(page, "Delete now")
    said(page, "lets nobody in any more.")
    assert token not in page.content()


@pytest.fixture
def maria(staff: Page, browser: Browser, served: Serving) -> Iterator[Page]:
    add_user(staff, USER)
    with open_page(browser, served) as page, strictly(page):
        yield page


@pytest.mark.long
def test_a_user_s_own_page(maria: Page, server: str) -> None:
    maria.goto("/")
    maria.get_by_role("link", name="Your access tokens").click()
    look(maria, "account-login")
    maria.get_by_label("Username").fill(USER)
    maria.get_by_label("Password").fill(PASSWORD)
    press(maria, "Log in")
    look(maria, "account-none")
    maria.get_by_role("link", name="Make one").click()
    fill_in(maria, "Cursor at the office")
    look(maria, "account-add")
    press(maria, MAKE)
    token = shown(maria)
    look(maria, "account-shown")
    good(server, token)
    not_shown_again(maria, token)
    look(maria, "account-token")

    maria.get_by_role("link", name="Replace…").click()
    look(maria, "account-replace")
    maria.get_by_label("now", exact=True).check()
    press(maria, MAKE)
    second = shown(maria)
    assert call(server, token).status_code == 401
    good(server, second)
    maria.get_by_role("link", name="I have copied the token").click()
    look(maria, "account-tokens")
    press(maria, f"Delete now: Cursor at the office ({second[:10]}…)")
    expect(maria.get_by_text("lets nobody in any more.")).to_be_visible()
    assert call(server, second).status_code == 401
