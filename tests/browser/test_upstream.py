"""Two tools of another MCP server, from its list to a client: seven clicks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said
from tests.kinds.upstream.test_kind import start

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

TAKEN = ("tracker_add", "tracker_blocks")


@pytest.fixture
def _tracker(upstream_port: int) -> Iterator[None]:
    with start(sdk=upstream_port):
        yield


@pytest.mark.usefixtures("_tracker")
def test_from_a_list_to_a_client(keeper: Page, client: Listening) -> None:
    assert all(client.description(name) is None for name in TAKEN)
    keeper.goto("/admin/mcp_app/")
    keeper.locator("#content").get_by_role("link", name="Tools", exact=True).click()
    keeper.get_by_role("link", name="From another server").click()
    keeper.get_by_role("button", name="Look at Issue tracker").click()
    said(keeper, "Issue tracker lists 4 tools.")
    picture(keeper, "upstream")
    keeper.set_viewport_size({"width": 390, "height": 844})
    assert keeper.evaluate("document.documentElement.scrollWidth") <= 390
    for name in TAKEN:
        row = keeper.locator("tr", has=keeper.locator("code", has_text=name))
        row.get_by_role("checkbox").click()
    press(keeper, "Make and publish 2 tools…")
    expect(keeper.locator("#content")).to_contain_text("add at Issue tracker")
    press(keeper, "Publish the ticked ones")
    said(keeper, "2 were published.")
    keeper.set_viewport_size({"width": 1280, "height": 900})
    client.sees(lambda: all(client.description(name) for name in TAKEN), True)
    answer = client.ask("call_tool", TAKEN[0], {"a": 1})
    assert answer.structured_content == {"result": 2}, answer
