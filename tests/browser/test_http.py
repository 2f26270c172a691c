"""A call of another site, described in Chromium and made by a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_publishing import Listening, picture, press, said
from tests.newcomer.programs import Serving

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("axe"),
]

NAME: Final = "ask-the-supplier"


@pytest.fixture
def client(served: Serving) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp") as listening:
        yield listening


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def _described(staff: Page) -> None:
    """Make the tool; its path has a mistake."""
    staff.goto("/admin/mcp_app/tool/add/?kind=http")
    staff.wait_for_load_state("load")
    staff.locator("#id_title").press_sequentially("Ask the supplier")
    expect(staff.locator("#id_name")).to_have_value(NAME)
    staff.locator("#id_description").fill("Tells what an article costs.")
    staff.locator("#id_changes input[value='reads']").check()
    staff.get_by_role("button", name="Add a parameter").click()
    staff.locator("[name='input_schema-0-name']").fill("sku")
    staff.locator("[name='input_schema-0-description']").fill("Which article.")
    part(staff, "site").select_option("supplier")
    part(staff, "path").fill("/articles/{sku}")
    part(staff, "take").fill("article")
    part(staff, "keep").fill("name, price")


def test_from_nothing_to_a_client(staff: Page, client: Listening) -> None:
    _described(staff)
    press(staff, "Save and continue editing")
    expect(staff.locator(".mcp-errors")).to_contain_text("Write {{sku}}.")
    staff.wait_for_load_state("load")
    part(staff, "path").fill("/articles/{{sku}}")
    press(staff, "Save and continue editing")
    said(staff, "Saved.")
    panel = staff.locator("#id_calls")
    expect(panel).to_contain_text("This tool calls GET http://127.0.0.1:")
    expect(panel).to_contain_text("/supplier/articles/{{sku}} of Supplier")
    part(staff, "site").evaluate("each => each.closest('fieldset').scrollIntoView()")
    picture(staff, "http")

    press(staff, "Save and publish…")
    press(staff, "Publish version 1")
    said(staff, "Version 1 is published.")
    client.sees(lambda: client.description(NAME), "Tells what an article costs.")
    answer = client.ask("call_tool", NAME, {"sku": "ket-1"})
    assert answer.structured_content["name"] == "Kettle"
    missing = client.ask("call_tool", NAME, {"sku": "none"})
    assert missing.is_error
    assert missing.content[0].text == "Supplier has nothing there."
