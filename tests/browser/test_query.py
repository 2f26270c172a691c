"""Data of the site behind a tool, chosen in Chromium and called by a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_publishing import Listening, picture, press, said
from tests.newcomer.programs import Serving

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("axe"),
]

NAME: Final = "is-it-in-stock"


@pytest.fixture
def client(served: Serving) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp") as listening:
        yield listening


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def _chosen(page: Page, model: str, title: str) -> None:
    page.goto("/admin/mcp_app/tool/add/?kind=query")
    page.wait_for_load_state("load")
    page.locator("#id_title").press_sequentially(title)
    part(page, "model").select_option(model)
    expect(part(page, "filters-0-path")).to_be_visible()


def test_from_nothing_to_a_client(staff: Page, client: Listening) -> None:
    _chosen(staff, "shop.Product", "Is it in stock")
    expect(staff.locator("#id_name")).to_have_value(NAME)
    staff.locator("#id_description").fill("Tells how many pieces there are.")
    for name in ("name", "stock"):
        staff.locator(f"[name='config-0-shown'][value='{name}']").check()
    part(staff, "filters-0-path").select_option("sku")
    part(staff, "filters-0-comparison").select_option("is_any_case")
    press(staff, "Save and continue editing")
    said(staff, "Saved.")
    table = staff.locator("#id_now table")
    expect(table.locator("th")).to_have_text(["name", "stock"])
    expect(table.locator("tbody tr")).to_have_count(5)

    press(staff, "Save and publish…")
    press(staff, "Publish version 1")
    said(staff, "Version 1 is published.")
    client.sees(lambda: client.description(NAME), "Tells how many pieces there are.")
    [row] = _rows(client, "ket-1")
    assert row["name"] == "Kettle"
    assert _rows(client, "none") == []


def _rows(client: Listening, sku: str) -> Any:
    answer = client.ask("call_tool", NAME, {"sku": sku})
    return answer.structured_content["rows"]


def test_groups_are_chosen_where_the_answer_changes(staff: Page) -> None:
    _chosen(staff, "shop.Order", "Orders of the last week by status")
    part(staff, "answer").and_(staff.locator("[value='groups']")).check()
    for told in ("count", "sum/total"):
        staff.locator(f"[name='config-0-measures'][value='{told}']").check()
    part(staff, "by_1").select_option("status")
    part(staff, "filters-0-path").select_option("placed")
    part(staff, "filters-0-comparison").select_option("last_days")
    part(staff, "filters-0-given").select_option("fixed")
    part(staff, "filters-0-value").fill("seven")
    press(staff, "Save and continue editing")
    expect(staff.locator(".mcp-errors")).to_contain_text("Write a number.")
    staff.wait_for_load_state("load")
    part(staff, "filters-0-value").fill("7")
    press(staff, "Save and continue editing")
    said(staff, "Saved.")
    headings = staff.locator("#id_now th")
    expect(headings).to_have_text(["status", "count", "sum_total"])
    picture(staff, "query")
