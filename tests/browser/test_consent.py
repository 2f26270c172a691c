"""A person lets a program in, in Chromium, at a site that is strict about its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import (
    APIResponse,
    Browser,
    Page,
    Route,
    StorageState,
    ViewportSize,
    expect,
)

from tests.browser.chromium import allow, log_in
from tests.browser.conftest import KEEPER, PASSWORD, SIGNED, open_page
from tests.browser.keyboard import strike, tab_to, write
from tests.browser.loopback import STATE, THANKS, Loopback, loopback
from tests.browser.test_publishing import picture
from tests.newcomer.programs import Serving

# They share one demo.
pytestmark = pytest.mark.xdist_group("browser")

POLICY: Final = (
    "default-src 'none'; img-src data:; script-src 'self'; style-src 'self';"
    " form-action 'self'; frame-ancestors 'self'"
)
FRAMED: Final = """address => new Promise(resolve => {
    const frame = document.createElement("iframe")
    frame.onload = () => resolve()
    frame.src = address
    document.body.append(frame)
})"""
REFUSED: Final = "chrome-error://chromewebdata/"


@pytest.fixture
def program(served: Serving) -> Iterator[Loopback]:
    with loopback(served.url, SIGNED) as found:
        yield found


@contextmanager
def strictly(page: Page) -> Iterator[None]:
    def serve(route: Route) -> None:
        answer = route.fetch(max_redirects=0)
        own = answer.headers.get("content-security-policy")
        policies = ", ".join(filter(None, (POLICY, own)))
        headers = {**answer.headers, "content-security-policy": policies}
        route.fulfill(response=answer, headers=headers)

    refused: list[str] = []
    page.on("console", lambda each: refused.append(each.text))
    for pages in ("**/account/**", "**/mcp-oauth/**"):
        page.route(pages, serve)
    yield
    page.unroute_all(behavior="wait")
    assert [each for each in refused if "Content Security" in each] == []


def headline(page: Page) -> None:
    words = "Let a program on this computer use For programs as you?"
    expect(page.get_by_role("heading", name=words)).to_be_visible()


def comes_in(program: Loopback, page: Page, scope: str = "mcp:read") -> None:
    """See that the program has its code, and that the code is good."""
    expect(page.get_by_text(THANKS)).to_be_visible()
    brought = program.back.gets()
    assert brought.keys() == {"code", "state", "iss"}
    assert (brought["state"], brought["iss"]) == (STATE, program.site)
    assert program.exchange(brought["code"])["scope"] == scope


@pytest.mark.usefixtures("axe")
def test_a_program_is_let_in_by_keyboard(
    browser: Browser, served: Serving, program: Loopback
) -> None:
    address = program.address("By keyboard")
    with open_page(browser, served) as page, strictly(page):
        page.goto(address)
        write(page, page.get_by_label("Username"), KEEPER)
        write(page, page.get_by_label("Password"), PASSWORD)
        page.keyboard.press("Enter")
        headline(page)
        expect(page.get_by_text("It calls itself “By keyboard”.")).to_be_visible()
        picture(page, "consent")
        tab_to(page, page.get_by_role("radio", name="Only look things up"))
        page.keyboard.press("ArrowDown")
        strike(page, page.get_by_role("button", name="Allow"))
        comes_in(program, page, "mcp:read mcp:change")


def test_a_program_is_let_in_without_scripts(
    browser: Browser, served: Serving, program: Loopback
) -> None:
    address = program.address("Without scripts")
    with open_page(browser, served, java_script_enabled=False) as page:
        page.goto(address)
        log_in(page, KEEPER, PASSWORD)
        headline(page)
        allow(page)
        comes_in(program, page)


def test_cancel_reaches_the_program(
    browser: Browser, served: Serving, keys: StorageState, program: Loopback
) -> None:
    address = program.address("Not wanted")
    with open_page(browser, served, storage_state=keys) as page, strictly(page):
        page.goto(address)
        strike(page, page.get_by_role("button", name="Cancel"))
        expect(page.get_by_text(THANKS)).to_be_visible()
        refusal = {"error": "access_denied", "state": STATE, "iss": program.site}
        assert program.back.gets() == refusal


def test_allow_that_is_pressed_twice_makes_one_app(
    browser: Browser, served: Serving, keys: StorageState, program: Loopback
) -> None:
    """The second press comes while the first is on its way, and its answer is lost."""
    address = program.address("Pressed twice")
    answers: list[APIResponse] = []

    def serve(route: Route) -> None:
        answers.append(route.fetch(max_redirects=0))
        if len(answers) > 1:
            route.fulfill(response=answers[-1])

    with open_page(browser, served, storage_state=keys) as page:
        page.goto(address)
        page.route("**/mcp-oauth/consent", serve)
        tab_to(page, page.get_by_role("button", name="Allow"))
        page.keyboard.press("Enter")
        while not answers:
            page.wait_for_timeout(20)
        page.keyboard.press("Enter")
        comes_in(program, page)
        assert [each.status for each in answers] == [200, 200]
        assert answers[0].text() == answers[1].text()
        assert program.back.got_nothing()
        page.goto(address)
        expect(page.get_by_text("It has 1 connection already.")).to_be_visible()


def test_the_page_cannot_be_framed(
    browser: Browser, served: Serving, keys: StorageState, program: Loopback
) -> None:
    """Not even by the site itself."""
    address = program.address("Framed")
    with open_page(browser, served, storage_state=keys) as page:
        page.goto(address)
        headline(page)
        page.goto("/account/tokens/")
        page.evaluate(FRAMED, address)
        assert [each.url for each in page.frames[1:]] == [REFUSED]


def test_names_and_hosts_are_text_and_shown_whole(
    browser: Browser, served: Serving, keys: StorageState, program: Loopback
) -> None:
    host = ".".join(["w" * 48] * 4) + ".example"
    address = program.address("<b>“Bold”\u202e</b>", f"https://{host}/back")
    narrow: ViewportSize = {"width": 320, "height": 800}
    with open_page(browser, served, storage_state=keys, viewport=narrow) as page:
        page.goto(address)
        heading = page.get_by_role("heading", name=f"Let {host} use")
        expect(heading).to_be_visible()
        expect(page.get_by_text("It calls itself “<b>'Bold'</b>”.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        box = heading.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 320
