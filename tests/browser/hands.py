"""What staff do to a page: with a mouse, on a phone, without scripts, by keys alone."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

from tests.browser.keyboard import STOPS, strike, tab_to, write

MOUSE, NARROW, SCRIPTLESS, KEYBOARD = "mouse", "narrow", "scriptless", "keyboard"
LATE: Final = "late"
"""With a mouse, where each answer to a script comes three seconds late."""
DELAY: Final = """const send = fetch;
    globalThis.fetch = (...given) => send(...given).then(
        answer => new Promise(go => setTimeout(go, 3000, answer)))"""
CHOSEN: Final = "list => list.selectedOptions[0]?.text"


class Hands:
    """What somebody does to a page, counted; `way` says with what."""

    def __init__(self, page: Page, way: str) -> None:
        self.page, self.way, self.steps = page, way, 0

    def part(self, name: str) -> Locator:
        return self.page.locator(f"[name='config-0-{name}']")

    def press(self, wanted: Locator, key: str = "Enter") -> None:
        self.steps += 1
        if self.way == KEYBOARD:
            strike(self.page, wanted, key)
        else:
            wanted.click()

    def press_button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def follow(self, name: str) -> None:
        self.press(self.page.locator("#content").get_by_role("link", name=name).first)
        self.page.wait_for_load_state("load")

    def write(self, wanted: Locator, text: str) -> None:
        self.steps += 1
        if self.way == KEYBOARD:
            write(self.page, wanted, text)
        else:
            wanted.fill(text)

    def choose(self, wanted: Locator, label: str, at_once: bool = False) -> None:
        """Choose in a list; `at_once` does what is chosen, and is empty again."""
        self.steps += 1
        if self.way != KEYBOARD:
            wanted.select_option(label=label)
            return
        tab_to(self.page, wanted)
        if at_once:
            # Closed, it would do what the first letter comes to.
            self.page.keyboard.press("Alt+ArrowDown")
            self.page.keyboard.type(label)
            self.page.keyboard.press("Enter")
            return
        for _ in range(STOPS):
            self.page.keyboard.press(label[0])
            if wanted.evaluate(CHOSEN) == label:
                return
        raise AssertionError(f"The keyboard does not come to {label}.")

    def add(self, lines: str, label: str) -> None:
        """Choose what adds a line, and wait for it."""
        line = self.page.locator(f"[name^='config-0-{lines}-'][name$='-path']")
        count = line.count()
        adding = self.part(f"{lines}-add")
        self.choose(adding, label, at_once=True)
        self.go_on(adding)
        expect(line).to_have_count(count + 1)

    def group(self) -> None:
        wanted = self.page.get_by_label("Groups: counts and sums")
        if self.way == KEYBOARD:
            tab_to(self.page, self.part("answer").first)
            self.press(self.part("answer").first, "ArrowRight")
        else:
            self.press(wanted)
        self.go_on(wanted)
        expect(self.part("group_by-add")).to_be_attached()

    def go_on(self, wanted: Locator) -> None:
        """Without scripts, press the button after it, which shows what follows."""
        if self.way == SCRIPTLESS:
            self.press(wanted.locator("xpath=following::button[1]"))
