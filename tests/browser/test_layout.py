"""Where things stand on a page: nothing broken in two, cut off, or touching."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import unfold
from tests.browser.conftest import strictly, violations
from tests.browser.listening import Listening
from tests.browser.test_publishing import STILL, press
from tests.marks import long_cases

pytestmark = pytest.mark.xdist_group("browser")

LINES: Final = """cell => {
    const range = document.createRange()
    range.selectNodeContents(cell)
    return new Set([...range.getClientRects()].map(each => Math.round(each.top))).size
}"""
SEVEN: Final = (
    *("", "tool/add/", "tool/add/?kind=query&model=shop.Order", "call/"),
    *("tool/1/publish/", "tool/1/try/", "server/stop/"),
)
"""Pages of the admin that staff see most."""
ALL: Final = (
    *SEVEN,
    *(f"tool/{each}/" for each in ("1/change", "1/history", "1/who", "openapi")),
    *(f"tool/add/?kind={each}" for each in ("text", "http&site=helpdesk", "function")),
    *("prompt/add/?kind=text", "resource/add/?kind=text", "resource/", "prompt/"),
    *("resourcetemplate/add/?kind=query", "server/add/", "server/", "server/import/"),
    *(f"server/1/{each}/" for each in ("change", "connect", "check", "seen", "who")),
    *(
        "server/find/?q=o",
        "session/",
        "session/live/",
        "call/refused/",
        "call/1/",
        "tool/",
    ),
    *("accesstoken/", "accesstoken/add/", "task/", "eventtype/"),
    *("eventsubscription/", "eventsubscription/1/change/?test"),
    "eventtype/add/?kind=change&model=shop.Order",
)
PHONE: Final = {"width": 390, "height": 844}


@pytest.mark.usefixtures("axe")
@pytest.mark.parametrize(
    ("pages", "scheme", "width"),
    [
        (SEVEN, "light", 1280),
        *long_cases((ALL, "light", 1280), (ALL, "dark", 1280)),
        *long_cases((ALL, "light", 390), (ALL, "dark", 390)),
    ],
)
def test_every_page_can_be_read_and_keeps_to_a_strict_policy(
    staff: Page, client: Listening, pages: tuple[str, ...], scheme: str, width: int
) -> None:
    client.ask("call_tool", "order_status", {"number": 1})
    staff.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    staff.set_viewport_size({"width": width, "height": 800})
    with strictly(staff):
        for path in pages:
            opened(staff, path)
            see_good(staff, path)


@pytest.mark.long
@pytest.mark.usefixtures("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_wrong_and_what_differs_can_be_read(
    staff: Page, scheme: str, width: int
) -> None:
    staff.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    staff.set_viewport_size({"width": width, "height": 800})
    with strictly(staff):
        opened(staff, "tool/add/?kind=text")
        staff.locator("#id_title").fill(f"Hours {scheme} {width}")
        staff.locator("#id_description").fill("Says when the shop is open.")
        unfold(staff)
        staff.locator("#id_permission").fill("auth.view_usr")
        press(staff, "Save and publish…")
        staff.locator(".mcp-errors").wait_for()
        see_good(staff, "errors")
        staff.locator("#id_permission").fill("")
        staff.get_by_label("Nothing: it only reads").check()
        staff.locator("#id_text").fill("From nine to five.")
        press(staff, "Save and publish…")
        press(staff, "Publish version 1")
        staff.locator(".mcp-tabs").get_by_role("link", name="Edit").click()
        staff.locator("#id_text").fill("From nine to six.")
        press(staff, "Save and publish…")
        staff.locator("ins").first.wait_for()
        see_good(staff, "differences")
        opened(staff, "tool/add/?kind=query&model=shop.Order")
        staff.context.clear_cookies()
        staff.locator("[name='config-0-filters-add']").select_option(index=1)
        staff.get_by_role("alert").filter(has_text="You are logged out.").wait_for()
        see_good(staff, "a lost login")


@pytest.mark.usefixtures("axe")
def test_a_task_is_watched_and_cancelled_on_a_phone(staff: Page) -> None:
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    staff.goto("/admin/mcp_app/tool/?q=sales_report")
    staff.get_by_role("link", name="Try it Sales report").click()
    staff.get_by_role("button", name="Start as a task").click()
    # The page is drawn again by itself.
    expect(staff.get_by_role("row", name="Progress")).to_contain_text("The week of")
    see_good(staff, "a task")
    staff.get_by_role("link", name="Tasks", exact=True).first.click()
    row = staff.locator("#result_list tbody tr").first
    row.get_by_role("checkbox").check()
    row.get_by_role("checkbox").blur()
    took = row.locator(".field-took")
    expect(took).not_to_have_text(took.inner_text())
    expect(row.get_by_role("checkbox")).to_be_checked()
    see_good(staff, "tasks")
    row.get_by_role("link").click()
    staff.get_by_role("button", name="Cancel this task").click()
    expect(row.locator(".field-condition")).to_have_text("cancelled")


def opened(page: Page, path: str) -> None:
    answer = page.goto(f"/admin/mcp_app/{path}")
    assert answer is not None
    assert answer.ok, path
    # A page that is not there leads to another one.
    assert page.url.endswith(f"/admin/mcp_app/{path}")
    page.wait_for_load_state("load")


def see_good(page: Page, where: str) -> None:
    # Colours of the admin change slowly.
    assert page.evaluate(STILL) == 0
    assert violations(page) == {}, where
    script = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(script), where


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
        for each in (
            ".mcp-strip",
            ".mcp-twocol > :first-child",
            ".mcp-twocol > :last-child",
        )
    )
    assert strip is not None
    assert first is not None
    assert second is not None
    assert strip["width"] >= 1180
    assert first["x"] + first["width"] < second["x"]
