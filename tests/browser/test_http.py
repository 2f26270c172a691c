"""A call of another site, described in Chromium and made by a client."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.keyboard import choose, strike, write
from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

NAME: Final = "ask-the-supplier"


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def _described(keeper: Page) -> None:
    page = keeper
    page.goto("/admin/mcp_app/tool/add/?kind=http")
    page.wait_for_load_state("load")
    choose(page, part(page, "site"), "s")
    write(page, part(page, "path"), "/articles/{sku}")
    write(page, part(page, "take"), "article")
    write(page, part(page, "keep"), "name, price")
    write(page, page.locator("#id_title"), "Ask the supplier")
    write(page, page.locator("#id_description"), "Tells what an article costs.")
    strike(page, page.get_by_role("button", name="Save", exact=True))


def test_from_nothing_to_a_client(keeper: Page, client: Listening) -> None:
    _described(keeper)
    expect(keeper.locator(".mcp-errors")).to_contain_text("Write {{sku}}.")
    keeper.wait_for_load_state("load")
    part(keeper, "path").fill("/articles/{{sku}}")
    press(keeper, "Save")
    expect(keeper.locator(".mcp-errors")).to_contain_text("{{sku}} is not a parameter.")
    keeper.wait_for_load_state("load")
    press(keeper, "Add sku")
    expect(keeper.get_by_role("button", name="Add sku")).to_have_count(0)
    keeper.get_by_label("What {{sku}} means").fill("Which article.")
    press(keeper, "Save")
    said(keeper, "Saved.")
    panel = keeper.locator(".mcp-beside")
    expect(panel).to_contain_text("It calls GET http://127.0.0.1:")
    expect(panel).to_contain_text("/supplier/articles/{{sku}}")
    part(keeper, "site").evaluate("each => each.closest('fieldset').scrollIntoView()")
    picture(keeper, "http")

    press(keeper, "Save and publish…")
    press(keeper, "Publish version 1")
    said(keeper, "Version 1 is published.")
    client.sees(lambda: client.description(NAME), "Tells what an article costs.")
    answer = client.ask("call_tool", NAME, {"sku": "ket-1"})
    assert answer.structured_content["name"] == "Kettle"
    missing = client.ask("call_tool", NAME, {"sku": "none"})
    assert missing.is_error
    assert missing.content[0].text == "Supplier has nothing there."
