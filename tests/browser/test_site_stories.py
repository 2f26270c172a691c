"""Calls of another site from nothing to a client, in as few steps as they are worth."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.listening import Listening
from tests.browser.test_publishing import said, serious
from tests.browser.test_stories import MOUSE, Hands
from tests.egress.peer import Peer

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

PASTED: Final = """curl 'http://127.0.0.1:{port}/api/parts/P-100?lang=en' \\
  -H 'Authorization: Bearer a-key' -b 'session=5' -k"""


def test_one_part_pasted_from_a_browser(
    keeper: Page, client: Listening, parts: Peer
) -> None:
    keeper.goto("/admin/mcp_app/tool/")
    hands = Hands(keeper, MOUSE)
    hands.follow("Add tool")
    hands.follow("Parts supplier")
    pasted = keeper.get_by_label("Address or curl command")
    hands.write(pasted, PASTED.format(port=parts.port))
    hands.press_button("Take it apart")
    expect(keeper.get_by_role("status").first).to_contain_text(
        "GET at Parts supplier. Left out: cookies, -k, the header Authorization"
    )
    title = keeper.locator("#id_title")
    expect(title).to_have_attribute("placeholder", "Parts supplier: P-100")
    hands.write(keeper.get_by_label("Parameter for P-100"), "sku")
    hands.press_button("Fetch")
    tree = keeper.locator(".mcp-tree")
    expect(tree).to_contain_text("“Hydraulic hose 2 m”")
    hands.press(tree.get_by_label("internal_cost").first)
    hands.write(keeper.get_by_label("Title:"), "Part of the supplier")
    for width in (1280, 390):
        keeper.set_viewport_size({"width": width, "height": 900})
        assert serious(keeper, preload=False) == []
        assert keeper.evaluate("document.documentElement.scrollWidth") <= width
    hands.press_button("Save and publish…")
    hands.press_button("Publish version 1")
    said(keeper, "Version 1 is published.")
    assert hands.steps <= 10
    name = "part-of-the-supplier"
    client.sees(lambda: client.description(name) is not None, True)
    answer = client.ask("call_tool", name, {"sku": "P-100"})
    assert answer.structured_content["price"] == 48.9
    assert "internal_cost" not in answer.structured_content
    assert parts.received[-1].target == "/api/parts/P-100?lang=en"
    assert client.ask("call_tool", name, {"sku": "none"}).is_error


def test_two_tools_from_their_document(keeper: Page, client: Listening) -> None:
    keeper.goto("/admin/mcp_app/tool/")
    hands = Hands(keeper, MOUSE)
    hands.follow("From OpenAPI")
    hands.steps += 1
    keeper.get_by_label("Site", exact=True).select_option("parts")
    hands.press_button("Read it")
    photos = keeper.locator("tr", has_text="/photos")
    expect(photos).to_contain_text("Cannot be a tool: it wants multipart/form-data")
    for path in ("/parts", "/parts/{sku}"):
        hands.press(keeper.get_by_label(f"GET {path}", exact=True))
    assert serious(keeper) == []
    hands.press_button("Make and publish 2 tools…")
    hands.press_button("Publish the ticked ones")
    said(keeper, "2 were published.")
    assert hands.steps <= 7
    client.sees(lambda: client.description("get_part") is not None, True)
    answer = client.ask("call_tool", "get_part", {"sku": "P-100"})
    assert answer.structured_content == {"name": "Hydraulic hose 2 m", "price": 48.9}
