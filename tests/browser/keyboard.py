"""Using a page by the keyboard alone."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page

STOPS: Final = 150


def tab_to(page: Page, wanted: Locator) -> None:
    for _ in range(STOPS):
        if wanted.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"The Tab key does not come to {wanted}.")


def write(page: Page, wanted: Locator, text: str) -> None:
    tab_to(page, wanted)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def choose(page: Page, wanted: Locator, letter: str) -> None:
    tab_to(page, wanted)
    page.keyboard.press(letter)


def strike(page: Page, wanted: Locator, key: str = "Enter") -> None:
    tab_to(page, wanted)
    page.keyboard.press(key)
