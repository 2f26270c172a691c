"""Data of the site behind a tool, chosen in Chromium and called by a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.hands import DELAY
from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said
from tests.clients.node import report_of
from tests.egress.peer import Peer
from tests.newcomer.programs import Serving

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

TEAM: Final = "team"
"""The server of the demo that knows who calls."""

INTO_VIEW: Final = "each => each.closest('.mcp-lookup, form').scrollIntoView()"
WEEK: Final = "orders-by-status"


@pytest.fixture
def client(served: Serving, token: str) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp/{TEAM}", token) as listening:
        yield listening


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[name='config-0-{name}']")


def add(page: Page, lines: str, choice: str) -> None:
    part(page, f"{lines}-add").select_option(choice)
    expect(part(page, f"{lines}-add")).to_have_value("")


def choose(page: Page, name: str, value: str) -> None:
    """Choose what changes the line, and wait until it has."""
    part(page, name).select_option(value)
    expect(page.locator("#id_config[aria-busy]")).to_have_count(0)


def begin(page: Page, title: str) -> None:
    page.goto("/admin/mcp_app/tool/add/")
    page.locator(".mcp-models").get_by_role("link", name=title, exact=True).click()
    page.wait_for_load_state("load")


def publish(page: Page) -> None:
    press(page, "Save and publish…")
    press(page, "Publish version 1")
    said(page, "Version 1 is published.")


def preview(page: Page, *headings: str) -> Locator:
    table = page.locator("#id_now table").first
    expect(table.locator("th")).to_have_text([*headings])
    return table


def _rows(client: Listening, tool: str, **given: Any) -> Any:
    answer = client.ask("call_tool", tool, given)
    assert not answer.is_error, answer
    return answer.structured_content["rows"]


def test_from_nothing_to_a_client(keeper: Page, client: Listening) -> None:
    """One chooses a model and a filter; the rest is drafted."""
    begin(keeper, "Products")
    add(keeper, "filters", "sku")
    expect(part(keeper, "filters-0-lookup")).to_be_focused()
    choose(keeper, "filters-0-lookup", "iexact")
    part(keeper, "columns").and_(keeper.locator("[value='price']")).uncheck()
    # What is typed is shown before it is saved.
    expect(preview(keeper, "sku", "name", "stock").locator("tbody tr")).to_have_count(5)
    expect(keeper.locator("#id_now")).to_contain_text("The first 5 rows, as you")
    expect(keeper.locator("#id_title")).to_have_attribute(
        "placeholder", "Products by sku"
    )
    publish(keeper)
    name = "products-by-sku"
    client.sees(lambda: client.description(name) is not None, True)
    [row] = _rows(client, name, sku="ket-1")
    assert row["name"] == "Kettle"
    assert _rows(client, name, sku="none") == []


def test_groups_are_chosen_where_the_answer_changes(
    keeper: Page, client: Listening, served: Serving, token: str
) -> None:
    begin(keeper, "Orders")
    part(keeper, "answer").and_(keeper.locator("[value='groups']")).check()
    add(keeper, "group_by", "status")
    add(keeper, "measures", "sum/total")
    add(keeper, "filters", "placed")
    choose(keeper, "filters-0-lookup", "last_days")
    choose(keeper, "filters-0-source", "fixed")
    # The preview goes on without what has no value yet, for which nobody is blamed.
    expect(keeper.locator("#id_config")).not_to_contain_text("Write the value.")
    expect(keeper.locator("#id_now")).to_contain_text("filter 1 has an error")
    part(keeper, "filters-0-value").fill("7")
    expect(keeper.locator("#id_now")).not_to_contain_text("has an error")
    preview(keeper, "status", "orders", "sum_total")
    part(keeper, "answer").first.evaluate(INTO_VIEW)
    picture(keeper, "query")
    press(keeper, "Save")
    said(keeper, "Saved.")
    publish(keeper)
    client.sees(lambda: client.description(WEEK) is not None, True)
    groups = client.ask("call_tool", WEEK, {}).structured_content["groups"]
    assert all(set(each) == {"status", "orders", "sum_total"} for each in groups)
    url = f"{served.url}/mcp/{TEAM}"
    called = report_of("call.mjs", url, WEEK, "{}", token)
    assert called["listed"]
    assert called["result"]["structuredContent"]["groups"] == groups
    # The public server asks nobody who they are.
    with Listening(f"{served.url}/mcp") as anyone:
        assert anyone.description("order_status") is not None
        assert anyone.description(WEEK) is None


@pytest.mark.long
def test_what_is_typed_before_a_late_answer_stays(keeper: Page, parts: Peer) -> None:
    page, limit = keeper, part(keeper, "limit")
    title = page.locator("#id_title")
    lines = page.locator("[name^='config-0-filters-'][name$='-path']")
    begin(page, "Orders")
    for choice in ("status", "placed", "customer"):
        add(page, "filters", choice)
    page.evaluate(DELAY)
    page.get_by_role("button", name="Remove status").click()
    page.get_by_role("button", name="Remove placed").click()
    title.press_sequentially("Late")
    expect(lines).to_have_count(1)
    page.keyboard.type("r")
    expect(title).to_have_value("Later")
    page.get_by_role("button", name="Remove customer").click()
    press(page, "Save")
    said(page, "Saved.")
    expect(lines).to_have_count(0)

    begin(page, "Parts supplier")
    page.evaluate(DELAY)
    url = f"http://127.0.0.1:{parts.port}/api/parts/P-100"
    page.get_by_label("Address or curl command").fill(url)
    press(page, "Take it apart")
    limit.fill("7")
    expect(part(page, "path")).to_have_value("/parts/P-100")
    expect(limit).to_have_value("7")
