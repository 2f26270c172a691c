"""From a new prompt to a client that is told: staff with the product's rights only.

The pictures of docs/admin.md are made here; `make pictures` puts them there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.chromium import unfold
from tests.browser.conftest import AXE, PASSWORD, log_in, open_page
from tests.browser.listening import Listening
from tests.newcomer.programs import CHECKOUT, Serving

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

EDITOR: Final = "lena"
PICTURES: Final = Path(os.environ.get("PICTURES", CHECKOUT / "results" / "pictures"))
SERIOUS: Final = """async options => (await axe.run(document, {
    preload: false, resultTypes: ["violations"], ...options
})).violations.filter(each => ["serious", "critical"].includes(each.impact))
    .map(each => `${each.id}: ${each.nodes.map(node => node.target).join(", ")}`)"""
STILL: Final = """() => {
    for (let round = 0; round < 20 && document.getAnimations().length; round += 1)
        document.getAnimations().forEach(each => each.finish())
    return document.getAnimations().length
}"""
"""Ends them, and what follows from that: now and then one never ends by itself."""
OPTIONS: Final = "list => [...list.options].map(each => [each.value, each.text])"


@pytest.fixture(scope="package")
def allowed(browser: Browser, served: Serving, logged_in: StorageState) -> str:
    with open_page(browser, served, storage_state=logged_in) as staff:
        add_user(staff, EDITOR)
        staff.get_by_label("Staff status").check()
        rights = staff.locator("#id_user_permissions_from")
        chosen = [value for value, right in rights.evaluate(OPTIONS) if _is_own(right)]
        rights.select_option(chosen)
        press(staff, "Choose selected user permissions")
        press(staff, "Save")
        said(staff, "successfully")
    return EDITOR


@pytest.fixture
def editor(browser: Browser, served: Serving, allowed: str) -> Iterator[Page]:
    with open_page(browser, served) as page:
        page.goto("/admin/")
        log_in(page, allowed, PASSWORD)
        yield page


WIDE_BOXES = """[...document.querySelectorAll("[type=checkbox], [type=radio]")]
    .filter(each => each.offsetWidth > 40).length"""


def add_user(staff: Page, name: str) -> None:
    staff.goto("/admin/auth/user/add/")
    staff.get_by_label("Username").fill(name)
    for label in ("Password:", "Password confirmation:"):
        staff.get_by_label(label, exact=True).fill(PASSWORD)
    press(staff, "Save and continue editing")
    staff.wait_for_load_state("load")


def _is_own(right: str) -> bool:
    return right.startswith("MCP server |") and any(
        text in right
        for text in (
            *("prompt | Can", "tool | Can view", "tool | Can change"),
            *("server | Can view", "Can publish", "Can stop"),
        )
    )


def picture(page: Page, name: str, folder: Path = PICTURES) -> None:
    """See that the page has no serious violation in light, dark and narrow.

    Where pictures are asked for, they are taken.
    """
    size = page.viewport_size
    for look in ("light", "dark", "narrow"):
        page.emulate_media(color_scheme="dark" if look == "dark" else "light")
        width = 320 if look == "narrow" else 1280
        page.set_viewport_size({"width": width, "height": 800})
        # Colours of the admin change slowly.
        assert page.evaluate(STILL) == 0
        # In the dark a page has other colours, and nothing else.
        options = {"runOnly": ["color-contrast"]} if look == "dark" else {}
        assert serious(page, **options) == [], (name, look)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(WIDE_BOXES) == 0
        if "PICTURES" in os.environ:
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}-{look}.png")
    page.emulate_media(color_scheme="light")
    if size:
        page.set_viewport_size(size)


def serious(page: Page, **options: Any) -> list[str]:
    """Return what somebody could not read or use; `options` are those of axe."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text(encoding="utf-8"))
    violations: list[str] = page.evaluate(SERIOUS, options)
    return violations


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def said(page: Page, text: str) -> None:
    expect(page.locator(".messagelist")).to_contain_text(text)


NAME: Final = "answer-a-complaint-kindly"


def tab(page: Page, name: str) -> None:
    page.locator(".mcp-tabs").get_by_role("link", name=name).click()
    page.wait_for_load_state("load")


def test_a_prompt_from_nothing_to_a_client_and_back(
    editor: Page, client: Listening
) -> None:
    _make(editor)
    assert NAME not in client.prompts()
    _publish(editor, client)
    _edit(editor, client)
    _go_back(editor, client)


def _make(page: Page) -> None:
    page.goto("/admin/mcp_app/prompt/add/?kind=text")
    page.wait_for_load_state("load")
    page.locator("#id_title").press_sequentially("Answer a complaint kindly")
    page.locator("#id_description").fill("Writes a kind answer. Say what it is about.")
    press(page, "Add an argument")
    page.locator("[name='arguments-0-name']").fill("order")
    page.locator("[name='arguments-0-description']").fill("The number of the order.")
    page.locator("[name='config-0-text']").fill("Answer the complaint of {{ordr}}.")
    press(page, "Add a message")
    page.locator("[name='config-1-role']").select_option("assistant")
    page.locator("[name='config-1-text']").fill("I keep it short.")
    press(page, "Save")

    # A mistake is told at its field, and nothing is lost.
    expect(page.locator(".mcp-errors")).to_contain_text("Did you mean {{order}}?")
    page.wait_for_load_state("load")
    page.locator("[name='config-0-text']").fill("Answer the complaint of {{order}}.")
    press(page, "Save")
    said(page, "Saved.")
    expect(page.locator("#mcp-strip")).to_contain_text("Not published")
    picture(page, "edit")


def _publish(page: Page, client: Listening) -> None:
    tab(page, "Publish")
    picture(page, "publish-first")
    page.get_by_label("Note for the history").fill("For the new support team.")
    press(page, "Publish version 1")
    said(page, "Version 1 is published. Clients see it now.")
    client.sees(lambda: NAME in client.prompts(), expected=True)
    assert client.prompt(NAME, order="1042") == [
        "user: Answer the complaint of 1042.",
        "assistant: I keep it short.",
    ]


def _edit(page: Page, client: Listening) -> None:
    """A saved working copy reaches nobody, until it is published."""
    tab(page, "Edit")
    page.locator("[name='config-1-text']").fill("I keep it short and friendly.")
    press(page, "Save and publish…")
    expect(page.locator("#mcp-strip")).to_contain_text("Changed")
    assert client.prompt(NAME, order="1")[1] == "assistant: I keep it short."
    picture(page, "publish")
    press(page, "Publish version 2")
    friendly = "assistant: I keep it short and friendly."
    client.sees(lambda: client.prompt(NAME, order="1")[1], friendly)


def _go_back(page: Page, client: Listening) -> None:
    tab(page, "History")
    picture(page, "history")
    page.get_by_role("link", name="Roll back to this…").click()
    press(page, "Publish version 1 again as version 3")
    short = "assistant: I keep it short."
    client.sees(lambda: client.prompt(NAME, order="1")[1], short)
    tab(page, "Publish")
    page.get_by_role("link", name="Unpublish…").click()
    press(page, "Take it off the list")
    client.sees(lambda: NAME in client.prompts(), expected=False)


@pytest.mark.long
def test_a_tool_of_code_is_described_anew_and_put_back(
    editor: Page, client: Listening
) -> None:
    page, before = editor, client.description("order_status")
    page.goto("/admin/mcp_app/tool/")
    page.get_by_role("link", name="order_status").click()
    page.wait_for_load_state("load")
    better = "Tells where an order is. Use it when a customer asks for theirs."
    page.locator("#id_description").fill(better)
    press(page, "Save and publish…")
    assert client.description("order_status") == before
    press(page, "Publish version 1")
    client.sees(lambda: client.description("order_status"), better)

    tab(page, "Edit")
    picture(page, "overlay")
    press(page, "Use “Description” from code")
    said(page, "The working copy is as in the code.")
    tab(page, "Publish")
    press(page, "Publish version 2")
    client.sees(lambda: client.description("order_status"), before)

    press(page, "Stop this tool")
    said(page, "clients do not see it any more")
    client.sees(lambda: client.description("order_status"), None)
    page.get_by_role("link", name="Start again…").click()
    press(page, "Start again")
    client.sees(lambda: client.description("order_status"), before)


@pytest.mark.long
def test_lists_and_other_pages_can_be_read_by_everybody(staff: Page) -> None:
    for name, url in {
        "list": "/admin/mcp_app/tool/",
        "kind": "/admin/mcp_app/tool/add/",
        "server": "/admin/mcp_app/server/1/change/",
        "parameters": "/admin/mcp_app/tool/add/?kind=text",
    }.items():
        staff.goto(url)
        staff.wait_for_load_state("load")
        picture(staff, name)


@pytest.mark.long
def test_the_whole_way_without_scripts(scriptless: Page) -> None:
    page = scriptless
    page.goto("/admin/mcp_app/tool/add/?kind=text")
    unfold(page)
    page.locator("#id_name").fill("opening_hours")
    page.locator("#id_description").fill("Tells when the shop is open.")
    page.locator("#id_text").fill("From nine to five.")
    page.get_by_label("Nothing: it only reads").check()
    press(page, "Save and publish…")
    press(page, "Publish version 1")
    said(page, "Version 1 is published")
    press(page, "Stop this tool")
    page.get_by_role("link", name="Start again…").click()
    press(page, "Start again")
    said(page, "Started again")
    tab(page, "History")
    expect(page.locator("#change-history tbody tr")).to_have_count(4)
