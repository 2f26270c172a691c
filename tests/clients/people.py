"""Kim, who lets programs in and ends them: by forms, or in Chromium.

Either opens the address that a program shows, logs in, presses *Allow*, and is led back
to where the program listens.  Forms need no browser: the same ones are sent by HTTP.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

from tests.browser.chromium import allow, chromium, log_in, page_of
from tests.oauth.program import REFRESH

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

USER: Final = "kim"
PASSWORD: Final = "a-Long-enough-1"
APPS: Final = "/account/tokens/"

_INPUT: Final = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Person(Protocol):
    """Whoever sits in front of a browser."""

    def lets_in(self, address: str, **choices: str) -> None:
        """Let the program in whose address this is, and be led back to it."""

    def ends(self, site: str, name: str) -> None:
        """End all connected apps of a name, on the page that a site has for that."""


class ByForms:
    def lets_in(self, address: str, **choices: str) -> None:
        with _visit(address) as visit:
            visit.press("Allow", **{"may": "change", "ends": "90", **choices})
            match = REFRESH.search(visit.page.text)
            assert match, visit.page.text
            visit.open(html.unescape(match[1]))

    def ends(self, site: str, name: str) -> None:
        with _visit(urljoin(site, APPS)) as visit:
            button = _end_of(name)
            assert button in visit.page.text, visit.page.text
            while button in visit.page.text:
                visit.press(button)


class _Visit:
    def __init__(self, http: httpx2.Client, address: str) -> None:
        self._http = http
        self.open(address)

    def open(self, address: str) -> None:
        self.page = self._http.get(address).raise_for_status()

    def press(self, button: str, **typed: str) -> None:
        text = self.page.text[: self.page.text.rindex(button)]
        form = text[text.rindex("<form") :]
        action = re.search(r'^<form[^>]* action="([^"]*)"', form)
        target = urljoin(str(self.page.url), html.unescape(action[1]) if action else "")
        hidden = {name: html.unescape(value) for name, value in _INPUT.findall(form)}
        answer = self._http.post(target, data={**hidden, **typed})
        self.page = answer.raise_for_status()


@contextmanager
def _visit(address: str) -> Iterator[_Visit]:
    with httpx2.Client(follow_redirects=True) as http:
        visit = _Visit(http, address)
        visit.press("Log in", username=USER, password=PASSWORD)
        yield visit


class InChromium:
    """Uses a browser, which has a thread of its own: in those of tests run loops."""

    def __init__(self, browser: Browser, thread: Executor) -> None:
        self._browser, self._thread = browser, thread

    def lets_in(self, address: str, **choices: str) -> None:
        [back] = parse_qs(urlsplit(address).query)["redirect_uri"]

        def visit(page: Page) -> None:
            allow(page, **{"may": "change", **choices})
            page.wait_for_url(lambda url: url.startswith(back))

        self._logged_in(address, visit)

    def ends(self, site: str, name: str) -> None:
        def visit(page: Page) -> None:
            page.get_by_role("heading", name="Connected apps").wait_for()
            buttons = page.get_by_role("button", name=_end_of(name))
            assert buttons.count(), page.content()
            while buttons.count():
                with page.expect_navigation():
                    buttons.first.click()

        self._logged_in(urljoin(site, APPS), visit)

    def _logged_in(self, address: str, visit: Callable[[Page], None]) -> None:
        def opened() -> None:
            with page_of(self._browser, address) as page:
                page.goto(address)
                log_in(page, USER, PASSWORD)
                visit(page)

        self._thread.submit(opened).result()


@contextmanager
def in_chromium() -> Iterator[Person]:
    browsers = chromium()
    with ThreadPoolExecutor(1) as thread:
        browser = thread.submit(browsers.__enter__).result()
        try:
            yield InChromium(browser, thread)
        finally:
            thread.submit(browsers.__exit__, None, None, None).result()


def _end_of(name: str) -> str:
    return f"End now: {name} ("
