"""Everything is stopped and started again, as staff do it, while a client calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect

from tests.browser.conftest import open_page
from tests.browser.test_publishing import picture
from tests.newcomer.programs import Serving
from tests.process.streaming import Answer, called, stateless

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

HOME = "/admin/mcp_app/"


@pytest.fixture
def phone(browser: Browser, served: Serving, logged_in: StorageState) -> Iterator[Page]:
    with open_page(
        browser,
        served,
        storage_state=logged_in,
        java_script_enabled=False,
        viewport=ViewportSize(width=390, height=844),
    ) as page:
        yield page


def looked_up(served: Serving) -> Answer:
    return called(f"{served.url}/mcp", "order_status", number=1_001).whole()


def listed(served: Serving) -> list[str]:
    answer = stateless(f"{served.url}/mcp", "tools/list").whole()
    return [each["name"] for each in answer.messages[0]["result"]["tools"]]


def start_again(page: Page, what: str) -> None:
    page.get_by_role("link", name=f"Start again: {what}").click()
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Started again")


def test_everything_is_stopped_and_started_again(staff: Page, served: Serving) -> None:
    assert looked_up(served).status == 200
    staff.goto(HOME)
    staff.get_by_role("link", name="Stop…").click()
    staff.get_by_label(re.compile("^Why")).fill("Wrong prices go out")
    staff.get_by_role("button", name="Stop everything").click()
    # The page has answered: from now on it is true.
    expect(staff.locator(".messagelist .success")).to_contain_text("Stopped")
    refused = looked_up(served)
    assert (refused.status, "retry-after" in refused.headers) == (503, True)
    box = staff.locator(".mcp-stopgrid > div").filter(has_text="No client can")
    expect(box.locator(".mcp-state")).to_have_text("Stopped")
    picture(staff, "stop")

    staff.goto(f"{HOME}tool/")
    strip = staff.locator(".mcp-note.bad")
    expect(strip).to_contain_text("Everything is stopped since")
    expect(strip).to_contain_text("by admin. Why: “Wrong prices go out”.")

    strip.get_by_role("link", name="Look, and start again").click()
    staff.get_by_role("link", name="Start again: Everything").click()
    expect(staff.get_by_role("button", name="Start again")).to_be_visible()
    assert looked_up(served).status == 503
    picture(staff, "start-again")
    staff.get_by_role("button", name="Start again").click()
    expect(staff.locator(".messagelist .success")).to_contain_text("Started again")
    assert looked_up(served).status == 200
    staff.goto(f"{HOME}tool/")
    expect(strip).to_have_count(0)


@pytest.mark.long
def test_one_tool_is_stopped_on_a_telephone(phone: Page, served: Serving) -> None:
    """What was stopped by itself stays so when everything is started again."""
    phone.goto(f"{HOME}server/stop/")
    phone.get_by_label("One thing").fill("order")
    phone.get_by_role("button", name="Find").click()
    button = phone.get_by_role("button", name=re.compile("^Stop order_status"))
    button.wait_for()
    # It has its height once the style sheets are there.
    phone.wait_for_load_state("load")
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    button.click()
    assert "order_status" not in listed(served)
    result = looked_up(served).messages[0]["result"]
    assert result["isError"]
    assert "switched off by the people who run this site" in str(result["content"])

    phone.get_by_role("button", name="Stop everything").click()
    assert looked_up(served).status == 503
    start_again(phone, "Everything")
    expect(phone.locator(".messagelist .success")).to_contain_text("stay stopped")
    assert looked_up(served).messages[0]["result"]["isError"]
    start_again(phone, "order_status")
    assert "order_status" in listed(served)
    assert "isError" not in looked_up(served).messages[0]["result"]
