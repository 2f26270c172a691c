"""Data of the site behind a tool, chosen in Chromium and called by a client."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import HELPER, PASSWORD, log_in, open_page
from tests.browser.keyboard import STOPS
from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said
from tests.clients.node import report_of
from tests.newcomer.programs import Serving

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

NAME: Final = "is-it-in-stock"
TEAM: Final = "team"
"""The server of the demo that knows who calls."""

FOCUS: Final = "document.activeElement.name || document.activeElement.id"
INTO_VIEW: Final = "each => each.closest('.mcp-lookup').scrollIntoView()"
WEEK: Final = "orders-of-the-last-week-by-status"


@pytest.fixture
def client(served: Serving, token: str) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp/{TEAM}", token) as listening:
        yield listening


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def choices(page: Page, name: str, *values: str) -> None:
    for value in values:
        part(page, name).and_(page.locator(f"[value='{value}']")).check()


def told(page: Page, *measures: str) -> None:
    for at, each in enumerate(measures, start=1):
        part(page, f"measures_{at}").select_option(each)


def where(page: Page, at: int, path: str, comparison: str, value: str = "") -> None:
    part(page, f"filters-{at}-path").select_option(path)
    part(page, f"filters-{at}-comparison").select_option(comparison)
    if value:
        part(page, f"filters-{at}-given").select_option("fixed")
        part(page, f"filters-{at}-value").fill(value)


def save(page: Page) -> None:
    press(page, "Save")
    said(page, "Saved.")


def refused(page: Page, name: str, wrong: str, sentence: str, right: str) -> None:
    part(page, name).fill(wrong)
    press(page, "Save")
    expect(page.locator(".mcp-errors")).to_contain_text(sentence)
    page.wait_for_load_state("load")
    part(page, name).fill(right)


def publish(page: Page) -> None:
    press(page, "Save and publish…")
    press(page, "Publish version 1")
    said(page, "Version 1 is published.")


def _chosen(page: Page, model: str, title: str, name: str) -> None:
    page.goto("/admin/mcp_app/tool/add/?kind=query")
    page.wait_for_load_state("load")
    page.locator("#id_title").press_sequentially(title)
    expect(page.locator("#id_name")).to_have_value(name)
    part(page, "model").select_option(model)
    expect(part(page, "filters-0-path")).to_be_visible()


def test_from_nothing_to_a_client(keeper: Page, client: Listening) -> None:
    _chosen(keeper, "shop.Product", "Is it in stock", NAME)
    keeper.locator("#id_description").fill("Tells how many pieces there are.")
    choices(keeper, "shown", "name", "stock")
    where(keeper, 0, "sku", "iexact")
    refused(keeper, "limit", "500", "less than or equal to 200", "10")
    save(keeper)
    table = keeper.locator("#id_now table")
    expect(table.locator("th")).to_have_text(["name", "stock"])
    expect(table.locator("tbody tr")).to_have_count(5)

    publish(keeper)
    client.sees(lambda: client.description(NAME), "Tells how many pieces there are.")
    [row] = _rows(client, NAME, sku="ket-1")
    assert row["name"] == "Kettle"
    assert _rows(client, NAME, sku="none") == []


def _rows(client: Listening, tool: str, **given: Any) -> Any:
    answer = client.ask("call_tool", tool, given)
    assert not answer.is_error, answer
    return answer.structured_content["rows"]


def test_the_keyboard_alone(keeper: Page) -> None:
    """A model that was chosen is a text: the focus goes to what follows from it."""
    page = keeper
    page.goto("/admin/mcp_app/tool/add/?kind=query")
    page.wait_for_load_state("load")
    part(page, "model").focus()
    # As soon as one letter chooses a model, its parts are drawn.
    page.keyboard.press("p")
    expect(part(page, "answer").first).to_be_focused()
    seen: list[str] = []
    while "_addanother" not in seen and len(seen) < STOPS:
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUS))
    for wanted in ("shown", "filters-0-path", "filters-0-given", "order_1"):
        assert f"config-0-{wanted}" in seen, seen
    assert "_addanother" in seen


def _see_no_orders(other: Page, url: str) -> None:
    """Open the page as one who may not see the shop's orders: here neither."""
    other.goto("/admin/")
    log_in(other, HELPER, PASSWORD)
    other.goto(url)
    expect(other.locator("#id_now")).to_contain_text(
        "You may not see this data yourself (shop.view_order)."
    )


def test_groups_are_chosen_where_the_answer_changes(
    keeper: Page, client: Listening, browser: Browser, served: Serving, token: str
) -> None:
    _chosen(keeper, "shop.Order", "Orders of the last week by status", WEEK)
    keeper.locator("#id_description").fill("Tells what the orders come to.")
    choices(keeper, "answer", "groups")
    told(keeper, "count", "sum/total")
    part(keeper, "by_1").select_option("status")
    where(keeper, 0, "placed", "last_days", "seven")
    refused(keeper, "filters-0-value", "seven", "Write a number.", "7")
    save(keeper)
    headings = keeper.locator("#id_now th")
    expect(headings).to_have_text(["status", "count", "sum_total"])
    part(keeper, "answer").first.evaluate(INTO_VIEW)
    picture(keeper, "query")
    with open_page(browser, served) as other:
        _see_no_orders(other, keeper.url)
    publish(keeper)
    client.sees(lambda: client.description(WEEK), "Tells what the orders come to.")
    groups = client.ask("call_tool", WEEK, {}).structured_content["groups"]
    assert all(set(each) == {"status", "count", "sum_total"} for each in groups)
    url = f"{served.url}/mcp/{TEAM}"
    called = report_of("call.mjs", url, WEEK, "{}", token)
    assert called["listed"]
    assert called["result"]["structuredContent"]["groups"] == groups
    # The public server asks nobody who they are.
    with Listening(f"{served.url}/mcp") as anyone:
        assert anyone.description("order_status") is not None
        assert anyone.description(WEEK) is None


def test_a_row_with_the_rows_that_belong_to_it(keeper: Page, client: Listening) -> None:
    name = "a-customer-with-open-invoices"
    _chosen(keeper, "shop.Customer", "A customer with open invoices", name)
    keeper.locator("#id_description").fill("Tells what somebody has to pay.")
    choices(keeper, "shown", "name")
    keeper.get_by_text("With each row, a list of its invoices").click()
    choices(keeper, "list_invoices", "number", "order.total")
    where(keeper, 0, "email", "exact")
    part(keeper, "list_invoices_filters-0-path").select_option("paid")
    part(keeper, "list_invoices_filters-0-comparison").select_option("exact")
    part(keeper, "list_invoices_filters-0-given").select_option("fixed")
    value = "list_invoices_filters-0-value"
    refused(keeper, value, "perhaps", "Write yes or no.", "no")
    save(keeper)
    table = keeper.locator("#id_now table")
    expect(table.locator("th")).to_have_text(["name", "invoices"])
    publish(keeper)
    client.sees(lambda: client.description(name), "Tells what somebody has to pay.")
    [row] = _rows(client, name, email="ada@example.com")
    assert row["name"] == "Ada Byron"
    listed = row["invoices"]["rows"]
    assert listed
    assert all(set(each) == {"number", "order"} for each in listed)
    assert all(Decimal(each["order"]["total"]) > 0 for each in listed)


def test_without_scripts(scriptless_keeper: Page, client: Listening) -> None:
    """The parts that follow from a choice come with the page that is saved."""
    page, name = scriptless_keeper, "orders-by-status"
    page.goto("/admin/mcp_app/tool/add/?kind=query")
    page.locator("#id_title").fill("Orders by status")
    page.locator("#id_name").fill(name)
    page.locator("#id_description").fill("Tells how many orders there are.")
    part(page, "model").select_option("shop.Order")
    save(page)
    choices(page, "answer", "groups")
    save(page)
    told(page, "count", "sum/total")
    part(page, "by_1").select_option("status")
    where(page, 0, "placed", "last_days", "7")
    save(page)
    headings = page.locator("#id_now th")
    expect(headings).to_have_text(["status", "count", "sum_total"])
    publish(page)
    client.sees(lambda: client.description(name), "Tells how many orders there are.")
    answer = client.ask("call_tool", name, {})
    assert not answer.is_error, answer
