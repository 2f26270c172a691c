"""A call of another site, described in Chromium and made by a client."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("axe"),
]

NAME: Final = "ask-the-supplier"


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def _described(keeper: Page) -> None:
    """Make the tool; its path has a mistake."""
    keeper.goto("/admin/mcp_app/tool/add/?kind=http")
    keeper.wait_for_load_state("load")
    keeper.locator("#id_title").press_sequentially("Ask the supplier")
    expect(keeper.locator("#id_name")).to_have_value(NAME)
    keeper.locator("#id_description").fill("Tells what an article costs.")
    keeper.locator("#id_changes input[value='reads']").check()
    keeper.get_by_role("button", name="Add a parameter").click()
    keeper.locator("[name='input_schema-0-name']").fill("sku")
    keeper.locator("[name='input_schema-0-description']").fill("Which article.")
    part(keeper, "site").select_option("supplier")
    part(keeper, "path").fill("/articles/{sku}")
    part(keeper, "take").fill("article")
    part(keeper, "keep").fill("name, price")


def test_from_nothing_to_a_client(keeper: Page, client: Listening) -> None:
    _described(keeper)
    press(keeper, "Save and continue editing")
    expect(keeper.locator(".mcp-errors")).to_contain_text("Write {{sku}}.")
    keeper.wait_for_load_state("load")
    part(keeper, "path").fill("/articles/{{sku}}")
    press(keeper, "Save and continue editing")
    said(keeper, "Saved.")
    panel = keeper.locator("#id_calls")
    expect(panel).to_contain_text("This tool calls GET http://127.0.0.1:")
    expect(panel).to_contain_text("/supplier/articles/{{sku}} of Supplier")
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
