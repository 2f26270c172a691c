"""The log of calls, as staff read it: a call that failed, found in a few clicks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_publishing import picture
from tests.newcomer.programs import Serving
from tests.process.streaming import Answer, called

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

HOME = "/admin/mcp_app/"
LIST = f"{HOME}call/"


def until_written(page: Page, url: str, text: str) -> None:
    """Open a page again and again until it says something: calls are written behind."""
    page.goto(url)
    said = page.locator("tbody").get_by_text(text)
    for _ in range(PATIENCE_MS // 500):
        if said.count():
            return
        page.wait_for_timeout(500)
        page.goto(url)
    raise AssertionError(page.content())


def refused(served: Serving) -> None:
    answer = Answer(f"{served.url}/mcp", "POST", {"Content-Type": "text/plain"}, b"x")
    assert answer.whole().status == 415


def test_a_refused_call_is_found_in_two_clicks(staff: Page, served: Serving) -> None:
    url = f"{served.url}/mcp"
    for number in range(12):
        called(url, "order_status", number=1_001 + number).whole()
        called(url, "order_status", number=1_001).whole()
    called(url, "order_status", number="many").whole()
    called(url, "order_status", number=999).whole()
    until_written(staff, LIST, "Reported an error")
    staff.goto(HOME)
    picture(staff, "calls-home")

    staff.get_by_role("link", name=re.compile("[0-9]+ were refused")).click()
    row = staff.get_by_role("row").filter(has_text="Reported an error")
    row = row.filter(has_text="order_status").first
    row.get_by_role("rowheader").get_by_role("link").click()
    expect(staff.get_by_text("What happened")).to_be_visible()
    # Another test of this demo may have made the newest row that is written.
    expect(staff.locator(".mcp-code")).to_contain_text("There is no order ")
    picture(staff, "call")

    breadcrumbs = staff.locator(".breadcrumbs")
    breadcrumbs.get_by_role("link", name="Calls", exact=True).click()
    expect(staff.locator(".mcp-figure")).to_contain_text(["calls", "failed", "refused"])
    picture(staff, "calls")


@pytest.mark.long
def test_the_list_is_filtered_without_scripts(
    scriptless: Page, served: Serving
) -> None:
    page = scriptless
    called(f"{served.url}/mcp", "order_status", number=1_001).whole()
    called(f"{served.url}/mcp", "order_status", number="many").whole()
    until_written(page, f"{LIST}?outcome=arguments", "order_status")
    page.goto(LIST)
    page.get_by_label("Outcome").select_option("Refused: wrong values")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("outcome=any_mistake"))
    outcomes = {*page.locator(".mcp-out").all_inner_texts()}
    # Other tests of this demo may have made the second one.
    assert {"Wrong values"} <= outcomes <= {"Wrong values", "Reported an error"}
    page.get_by_role("link", name="order_status", exact=True).first.click()
    expect(page.locator(".mcp-chip")).to_have_text("Name: order_status")
    page.get_by_role("link", name="Remove").click()
    expect(page.locator(".mcp-chip")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CSV").click()
    text = download.value.path().read_text("utf-8")
    assert text.splitlines()[1].split(",")[1] in ("arguments", "tool_error")


@pytest.mark.long
def test_who_was_refused_at_the_door(staff: Page, served: Serving) -> None:
    refused(served)
    until_written(staff, f"{LIST}refused/", "Wrong content type")
    row = staff.get_by_role("row").filter(has_text="Wrong content type")
    expect(row).to_contain_text(
        "Configure the client to send Content-Type: application/json."
    )
    picture(staff, "refused")
