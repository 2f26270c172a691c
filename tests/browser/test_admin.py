"""What staff make in the admin is there for clients: in Chromium, without Python."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chromium import unfold
from tests.browser.inspector import ERAS, Inspector
from tests.clients.facts import PNG
from tests.marks import long_cases
from tests.newcomer.programs import Serving

# They share one demo.
pytestmark = pytest.mark.xdist_group("browser")

UNREADABLE: Final = """() => {
    const light = color => color.match(/[\\d.]+/g).slice(0, 3).map(Number)
        .map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0)
    const ground = element => {
        if (!element) return matchMedia("(prefers-color-scheme: dark)").matches
            ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)"
        const color = getComputedStyle(element).backgroundColor
        return color == "rgba(0, 0, 0, 0)" ? ground(element.parentElement) : color
    }
    return [...document.querySelectorAll("main *")].filter(element => {
        const both = [getComputedStyle(element).color, ground(element)].map(light)
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05) < 4.5
    }).map(element => element.outerHTML)
}"""

Inspectors = Callable[[str], Inspector]


@pytest.fixture
def inspector(served: Serving, tmp_path: Path) -> Inspectors:
    return lambda era: Inspector(f"{served.url}/mcp", era, tmp_path)


def opened(page: Page) -> None:
    """Wait for a form, until the admin's script has put the focus where it wants it.

    Before that it could take the focus away from a field that is being filled.
    """
    page.get_by_role("button", name="Save", exact=True).wait_for()
    page.wait_for_load_state("load")


def add(page: Page, model: str) -> None:
    page.goto("/admin/")
    page.locator(f"tr.model-{model}").get_by_role("link", name="Add").click()
    kind = page.locator(".mcp-choice", has_text="Answer with a text")
    kind.get_by_role("link").click()
    opened(page)


def change(page: Page, model: str, name: str) -> None:
    page.goto("/admin/")
    page.locator(f"tr.model-{model}").get_by_role("link", name="Change").click()
    # Not *Try it*, which names the row, too.
    page.get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()
    opened(page)


def publish(page: Page) -> None:
    page.get_by_role("button", name="Save and publish…", exact=True).click()
    page.get_by_role("button", name=re.compile("^Publish version")).click()
    expect(page.locator(".messagelist .success")).to_contain_text("is published")


def row(page: Page, sheet: str, number: int, field: str) -> Locator:
    return page.locator(f"[name='{sheet}-{number}-{field}']")


@pytest.mark.long
def test_a_resource_is_made_changed_and_stopped_in_the_list(
    staff: Page, inspector: Inspectors
) -> None:
    uri = "shop://policy/opening"
    add(staff, "resource")
    staff.get_by_label("Title").press_sequentially("Opening hours")
    staff.get_by_label("Address").fill(uri)
    staff.get_by_label("Text:", exact=True).fill("From nine to five.")
    publish(staff)

    assert uri in inspector("modern").resources()
    for era in ERAS:
        assert inspector(era).resources()[uri]["title"] == "Opening hours"
        content = inspector(era).resource(uri)
        assert content["text"] == "From nine to five."
        assert content["mimeType"] == "text/plain"

    change(staff, "resource", "Opening hours")
    staff.get_by_label("Text:", exact=True).fill("From ten to six.")
    publish(staff)
    modern = inspector("modern")
    assert modern.resource(uri)["text"] == "From ten to six."

    staff.goto("/admin/mcp_app/resource/")
    listed = staff.get_by_role("row").filter(has_text="Opening hours")
    listed.get_by_role("checkbox").check()
    staff.get_by_label("Action:").select_option("Stop")
    staff.get_by_role("button", name="Go").click()
    expect(staff.locator(".messagelist .success")).to_contain_text("1 was stopped.")
    assert uri not in modern.resources()


@pytest.mark.long
def test_a_file_is_a_resource(staff: Page, inspector: Inspectors) -> None:
    picture = base64.b64decode(PNG)
    add(staff, "resource")
    staff.get_by_label("Title").press_sequentially("Our sign")
    staff.get_by_label("Address").fill("shop://sign")
    staff.get_by_label("File:").set_input_files(
        {"name": "sign.png", "mimeType": "image/png", "buffer": picture}
    )
    publish(staff)

    modern = inspector("modern")
    assert "shop://sign" in modern.resources()
    assert modern.resources()["shop://sign"]["size"] == len(picture)
    content = modern.resource("shop://sign")
    assert (content["blob"], content["mimeType"]) == (PNG, "image/png")


def test_mistakes_are_told_beside_their_fields(staff: Page) -> None:
    add(staff, "prompt")
    unfold(staff)
    staff.locator("#id_name").fill("greet someone")
    staff.get_by_role("button", name="Add an argument").click()
    staff.keyboard.type("name")
    row(staff, "config", 0, "text").fill("Say hello to {{nam}}.")
    staff.get_by_role("button", name="Save", exact=True).click()

    errors = staff.get_by_role("region", name="Please correct the 2 errors below.")
    expect(errors).to_be_focused()
    wrong_name = staff.locator(".field-name .errorlist")
    expect(wrong_name).to_contain_text("“greet someone” cannot be a name")
    text = row(staff, "config", 0, "text")
    wrong_text = text.locator("xpath=..").locator(".errorlist")
    expect(wrong_text).to_contain_text("Did you mean {{name}}?")
    # Nothing that was typed is lost.
    expect(text).to_have_value(re.compile("Say hello"))
    errors.get_by_role("link", name="Text").click()
    expect(text).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", *long_cases("dark")])
def test_the_front_page_can_be_read(
    browser: Browser, served: Serving, scheme: str
) -> None:
    page = browser.new_page(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": 390, "height": 800},
    )
    page.goto(served.url)
    expect(page.get_by_text("claude mcp add")).to_contain_text(f"{served.url}/mcp")
    assert page.evaluate(UNREADABLE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
