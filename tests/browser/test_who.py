"""Who can see it: numbers, people and one person, as staff look it up."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import unfold
from tests.browser.test_publishing import add_user, picture, press, said, tab

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]


@pytest.fixture
def asked(staff: Page) -> Iterator[Page]:
    _set_access(staff, "Access token")
    yield staff
    _set_access(staff, "Public")


@pytest.mark.long
def test_who_can_see_a_prompt_and_why(asked: Page) -> None:
    staff = asked
    _people(staff)
    _prompt_for_support(staff)
    tab(staff, "Who can see it")
    sentence = staff.locator("#content-main > .mcp-note").first
    expect(sentence).to_contain_text(
        "2 people can list and use this prompt: everyone in Support, and 1 superuser."
        " Anonymous callers cannot: the server requires a token."
    )
    people = staff.locator("#mcp-people")
    expect(people).to_contain_text("maria")
    expect(people).not_to_contain_text("noor")
    picture(staff, "who")
    people.get_by_role("link", name=re.compile("^cannot ")).click()
    expect(people).to_contain_text("cannot: not in Support")
    people.get_by_role("link", name="Check noor").click()
    person = staff.locator("#mcp-person")
    expect(person).to_contain_text("noor cannot list and use this prompt.")
    expect(person).to_contain_text("Put the user into the group Support.")
    picture(staff, "who-one")
    staff.get_by_label("User name").fill("maria")
    press(staff, "Check this person")
    expect(person).to_contain_text("maria can list and use this prompt.")


def _people(page: Page) -> None:
    page.goto("/admin/auth/group/add/")
    page.get_by_label("Name:").fill("Support")
    page.get_by_role("button", name="Save", exact=True).click()
    for name, groups in (("maria", ["Support"]), ("noor", [])):
        add_user(page, name)
        if groups:
            page.locator("#id_groups_from").select_option(label=groups)
            press(page, "Choose selected groups")
        press(page, "Save")
        said(page, "successfully")


def _set_access(page: Page, wanted: str) -> None:
    page.goto("/admin/mcp_app/server/1/change/")
    for way in ("Access token", "Public"):
        page.get_by_role("checkbox", name=way).set_checked(way == wanted)
    if wanted == "Public":
        page.get_by_label("Type the word public to confirm").fill("public")
    press(page, "Save")
    said(page, "Saved.")


def _prompt_for_support(page: Page) -> None:
    page.goto("/admin/mcp_app/prompt/add/?kind=text")
    page.wait_for_load_state("load")
    page.locator("#id_title").fill("Answer kindly")
    page.locator("#id_description").fill("Writes a kind answer to a complaint.")
    page.locator("[name='config-0-text']").fill("Answer kindly.")
    unfold(page)
    page.locator("#id_groups").select_option(label="Support")
    press(page, "Save and publish…")
    press(page, "Publish version 1")
    said(page, "Version 1 is published. Clients see it now.")
