"""Who can see it: numbers, people and one person, as staff look it up."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_publishing import picture, press, said, tab

# They share one demo.
pytestmark = pytest.mark.xdist_group("browser")

PASSWORD: Final = "a-Long-enough-1"


def test_who_can_see_a_prompt_and_why(staff: Page) -> None:
    _people(staff)
    _server_that_asks(staff)
    _prompt_for_support(staff)
    tab(staff, "Who can see it")
    sentence = staff.locator("#content-main > .mcp-note").first
    expect(sentence).to_contain_text(
        "2 people can list and use this prompt: everyone in Support, and 1 superuser."
        " Anonymous callers cannot: the server asks for a token."
    )
    people = staff.locator("#mcp-people")
    expect(people).to_contain_text("maria")
    expect(people).not_to_contain_text("noor")
    picture(staff, "who")
    people.get_by_role("link", name="cannot (1)").click()
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
        page.goto("/admin/auth/user/add/")
        page.get_by_label("Username").fill(name)
        for label in ("Password:", "Password confirmation:"):
            page.get_by_label(label, exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Save and continue editing").click()
        page.wait_for_load_state("load")
        if groups:
            page.locator("#id_groups_from").select_option(label=groups)
            page.get_by_role("button", name="Choose selected groups").click()
        page.get_by_role("button", name="Save", exact=True).click()
        said(page, "successfully")


def _server_that_asks(page: Page) -> None:
    page.goto("/admin/mcp_app/server/")
    page.locator("#result_list tbody th a").first.click()
    page.get_by_role("checkbox", name="Access token").check()
    page.get_by_role("checkbox", name="Public").uncheck()
    page.get_by_role("button", name="Save", exact=True).click()
    said(page, "successfully")


def _prompt_for_support(page: Page) -> None:
    page.goto("/admin/mcp_app/prompt/add/?kind=text")
    page.wait_for_load_state("load")
    page.locator("#id_title").fill("Answer kindly")
    page.locator("#id_name").fill("answer-kindly")
    page.locator("#id_description").fill("Writes a kind answer to a complaint.")
    page.locator("[name='config-0-text']").fill("Answer kindly.")
    page.locator("#id_groups").select_option(label="Support")
    press(page, "Save and publish…")
    press(page, "Publish version 1")
    said(page, "Version 1 is published: every worker serves it.")
