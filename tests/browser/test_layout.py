"""Where things stand on a page: nothing broken in two, cut off, or touching."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.xdist_group("browser")

LINES: Final = """cell => {
    const range = document.createRange()
    range.selectNodeContents(cell)
    return new Set([...range.getClientRects()].map(each => Math.round(each.top))).size
}"""
PHONE: Final = {"width": 390, "height": 844}


def test_a_list_on_a_phone(staff: Page) -> None:
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    staff.goto("/admin/mcp_app/tool/")
    pill = staff.locator("#changelist .mcp-state").first
    assert pill.evaluate(LINES) == 1
    for cell in staff.locator(".field-tokens").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE["width"]
    expect(staff.locator(".field-tokens").first).to_contain_text("tokens")
    staff.get_by_role("link", name="Filter this list").click()
    expect(staff.locator("#changelist-filter")).to_be_in_viewport()


def test_a_name_in_the_history_is_not_broken(staff: Page) -> None:
    staff.set_viewport_size({"width": 1280, "height": 800})
    staff.goto("/admin/mcp_app/prompt/add/?kind=text")
    staff.wait_for_load_state("load")
    staff.locator("#id_title").fill("Somebody made this")
    staff.locator("#id_name").fill("somebody-made-this")
    staff.locator("#id_description").fill("Says who has made it, and nothing more.")
    staff.locator("[name='config-0-text']").fill("Who has made this?")
    staff.get_by_role("button", name="Save and publish…").click()
    staff.get_by_label("Note for the history").fill("A long note. " * 20)
    staff.get_by_role("button", name="Publish version 1").click()
    staff.locator(".mcp-tabs").get_by_role("link", name="History").click()
    who = staff.locator("#change-history td[data-label=Who]", has_text="admin").first
    assert who.evaluate(LINES) == 1


def test_the_home_page_takes_the_whole_width(staff: Page) -> None:
    staff.set_viewport_size({"width": 1280, "height": 800})
    staff.goto("/admin/mcp_app/")
    strip, first, second = (
        staff.locator(each).bounding_box()
        for each in (".mcp-strip", ".mcp-twocol > :first-child", ".mcp-steps")
    )
    assert strip is not None
    assert first is not None
    assert second is not None
    assert strip["width"] >= 1180
    assert first["x"] + first["width"] < second["x"]
