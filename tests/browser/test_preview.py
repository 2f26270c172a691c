"""A tool's answer as a chat shows it, in Chromium: the page, and what it cannot get."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, FrameLocator, expect

from tests.browser.conftest import violations
from tests.browser.test_trying import Site, open_site
from tests.drill.databases import prepared_file
from tests.egress.peer import Peer, peer_in_thread

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

ASK_FROM_OUTSIDE: Final = """() => new Promise(done => {
    addEventListener("message", done);
    postMessage({jsonrpc: "2.0", id: 1, method: "tools/call", params: {}});
})"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Peer]:
    with peer_in_thread() as peer:
        yield peer


@pytest.fixture(scope="module")
def site(
    browser: Browser, elsewhere: Peer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    file = Path(shutil.copy(prepared_file(), tmp_path_factory.mktemp("apps") / "db"))
    apps = {"APPS": f"http://127.0.0.1:{elsewhere.port}"}
    with open_site(browser, file, apps) as opened:
        yield opened


def run(site: Site, tool: str, **values: str) -> FrameLocator:
    page = site.open(tool)
    for name, value in values.items():
        page.locator("#mcp-try").get_by_label(name).fill(value)
    page.get_by_role("button", name="Run", exact=True).click()
    return page.frame_locator("iframe")


def test_the_page_is_shown_beside_the_result_at_a_strict_site(site: Site) -> None:
    page = site.page
    page.emulate_media(color_scheme="dark")
    frame = run(site, "app_good", count="99")
    expect(frame.locator("li")).to_have_count(99)
    expect(frame.locator("li").nth(1)).to_have_text("<b>1")
    expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
    expect(frame.locator("html")).to_have_attribute("lang", "en-us")
    expect(page.locator("#mcp-result pre").first).to_contain_text("<b>98")
    expect(page.locator("iframe")).to_have_css("height", "800px")
    expect(page.locator("iframe")).to_have_attribute("sandbox", "allow-scripts")
    assert violations(page) == {}
    # Whoever else posts a message is not the page.
    page.evaluate(ASK_FROM_OUTSIDE)
    expect(page.locator("[data-mcp-call]")).to_be_empty()
    assert site.refused == []


def test_a_page_gets_nothing_and_nothing_is_done_for_it(
    site: Site, elsewhere: Peer
) -> None:
    page, frame = site.page, run(site, "app_crook")
    expect(frame.locator("#got")).to_have_text("got: ")
    expect(frame.locator("#told")).to_have_text("This is a preview: nothing is done.")
    lines = page.locator("[data-mcp-call] li")
    call = 'The page asked to call drill_add with {"a":"<b>\ufffd"}. Nothing was done.'
    expect(lines.first).to_have_text(call)
    expect(lines.nth(1)).to_contain_text("asked for ui/open-link with {")
    expect(lines).to_have_count(20)
    frame.locator("#leave").click()
    # What it went to is blocked: the browser says so in its place.
    expect(frame.locator("#leave")).to_have_count(0)
    address = page.locator("iframe").get_attribute("src")
    assert address
    page.goto(address)
    expect(page.locator("#got")).to_have_text("got: ")
    assert elsewhere.received == []
    # All that it was refused is in the browser's console.
    site.refused.clear()


def test_without_the_page_there_is_a_sentence(site: Site) -> None:
    run(site, "app_gone")
    note = site.page.locator("#mcp-result .mcp-note")
    expect(note).to_contain_text("Clients get no page ui://drill/gone.")
    expect(site.page.locator("iframe")).to_have_count(0)
