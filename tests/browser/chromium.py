"""Chromium, and what a person does in it who lets a program in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
"""The one without a window needs two thirds of what the others do."""

FLAGS: Final = [
    *("--disable-background-networking", "--disable-component-update", "--disable-gpu"),
    *("--disable-quic", "--disable-software-rasterizer", "--disable-sync"),
    *("--in-process-gpu", "--no-first-run", "--no-sandbox"),
]
PATIENCE_MS: Final = 60_000


@contextmanager
def chromium() -> Iterator[Browser]:
    # It takes a while, and clients sign in without it, too.
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("Chromium is missing: apt-get install chromium-headless-shell.")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=program, args=FLAGS, headless=True
        )


@contextmanager
def page_of(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    context = browser.new_context(base_url=url, **{"color_scheme": "light", **options})
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def log_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def unfold(page: Page) -> None:
    """Open all that is folded in the form of a definition."""
    folded = page.locator("fieldset.mcp-fold:not(:has([open])) summary")
    while folded.count():
        folded.first.click()


def allow(page: Page, **choices: str) -> None:
    for name, value in choices.items():
        page.locator(f'input[name="{name}"][value="{value}"]').check()
    page.get_by_role("button", name="Allow").click()
