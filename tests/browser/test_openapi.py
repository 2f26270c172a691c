"""A ticket of our help desk, from its own OpenAPI document to a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_publishing import Listening, picture, press, said
from tests.helpdesk.running import KEY, HelpDesk
from tests.newcomer.programs import Serving

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("axe"),
]

NAME: Final = "tickets_create"


@pytest.fixture
def client(served: Serving) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp") as listening:
        yield listening


def _read(staff: Page) -> None:
    staff.goto("/admin/mcp_app/tool/")
    staff.get_by_role("link", name="From OpenAPI").click()
    staff.get_by_label("Site", exact=True).select_option("helpdesk")
    staff.get_by_label("Path at the site").fill("/api/schema/")
    press(staff, "Read it")
    said(staff, "Nothing is made yet.")


def _publish_tool(staff: Page, client: Listening) -> None:
    """Make the tool that creates a ticket, unless another test has made it."""
    if client.description(NAME) is not None:
        return
    _read(staff)
    row = staff.locator("tr", has_text="POST /api/tickets/")
    row.get_by_role("checkbox").check()
    press(staff, "Make the chosen")
    said(staff, "1 tool was made.")
    row.get_by_role("link", name=NAME).click()
    staff.locator("#id_description").fill("Creates a ticket of our help desk.")
    press(staff, "Save and publish…")
    press(staff, "Publish version 1")
    said(staff, "Version 1 is published.")
    client.sees(lambda: client.description(NAME), "Creates a ticket of our help desk.")


def test_from_a_document_to_a_ticket(
    staff: Page, client: Listening, desk: HelpDesk
) -> None:
    _read(staff)
    picture(staff, "openapi")
    _publish_tool(staff, client)
    ticket = {"subject": "The cake is a lie", "priority": "high"}
    answer = client.ask("call_tool", NAME, ticket)
    assert not answer.is_error, answer
    assert answer.structured_content["subject"] == "The cake is a lie"
    wrong = client.ask("call_tool", NAME, {**ticket, "priority": "none"})
    assert wrong.is_error
    assert [each["subject"] for each in desk.tickets()] == ["The cake is a lie"]
    assert KEY not in staff.content()


def test_the_document_changes(staff: Page, client: Listening, desk: HelpDesk) -> None:
    """The page tells the difference; clients see it when somebody publishes."""
    _publish_tool(staff, client)
    desk.release()
    staff.goto("/admin/mcp_app/tool/openapi/")
    staff.get_by_role("link", name="Help desk").click()
    staff.get_by_role("link", name="Look again").click()
    press(staff, "Look again")
    said(staff, "The document was read again.")
    expect(staff.get_by_role("heading", name="Changed there")).to_be_visible()
    section = staff.locator("section", has_text="POST /api/tickets/")
    expect(section).to_contain_text("reporter")
    picture(staff, "openapi-again")
    press(staff, "Take over the chosen")
    said(staff, "1 working copy was changed.")
    assert "reporter" not in client.schema(NAME)["properties"]
    staff.goto("/admin/mcp_app/tool/")
    staff.get_by_role("link", name=NAME).first.click()
    press(staff, "Save and publish…")
    press(staff, "Publish version 2")
    said(staff, "Version 2 is published.")
    client.sees(lambda: "reporter" in client.schema(NAME)["properties"], True)
