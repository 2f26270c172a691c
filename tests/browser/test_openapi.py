"""A ticket of our help desk, from its own OpenAPI document to a client."""

from __future__ import annotations

import json
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.keyboard import choose, strike, write
from tests.browser.listening import Listening
from tests.browser.test_publishing import picture, press, said
from tests.clients.node import report_of
from tests.helpdesk.running import KEY, HelpDesk
from tests.newcomer.programs import Serving

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

NAME: Final = "tickets_create"


def _read(keeper: Page) -> None:
    keeper.goto("/admin/mcp_app/tool/")
    strike(keeper, keeper.get_by_role("link", name="From another server"))
    choose(keeper, keeper.get_by_label("Site", exact=True), "h")
    write(keeper, keeper.get_by_label("Path at the site"), "/api/schema/")
    strike(keeper, keeper.get_by_role("button", name="Read it"))
    said(keeper, "Nothing is made yet.")


def _publish_tool(keeper: Page, client: Listening) -> None:
    if client.description(NAME) is not None:
        return
    _read(keeper)
    row = keeper.locator("tr", has_text="POST /api/tickets/")
    strike(keeper, row.get_by_role("checkbox"), "Space")
    strike(keeper, keeper.get_by_role("button", name="Make 1 tool"))
    said(keeper, "1 tool was made.")
    strike(keeper, row.get_by_role("link", name=NAME))
    keeper.locator("#id_description").fill("Creates a ticket of our help desk.")
    path = keeper.locator("[name='config-0-path']")
    path.fill("api/tickets/")
    press(keeper, "Save")
    expect(keeper.locator(".mcp-errors")).to_contain_text("must begin with “/”")
    keeper.wait_for_load_state("load")
    path.fill("/api/tickets/")
    press(keeper, "Save")
    expect(keeper.locator(".mcp-beside")).to_contain_text("It calls POST")
    press(keeper, "Save and publish…")
    press(keeper, "Publish version 1")
    said(keeper, "Version 1 is published.")
    client.sees(lambda: client.description(NAME), "Creates a ticket of our help desk.")


def test_from_a_document_to_a_ticket(
    keeper: Page, client: Listening, desk: HelpDesk, served: Serving
) -> None:
    _read(keeper)
    picture(keeper, "openapi")
    _publish_tool(keeper, client)
    ticket = {"subject": "The cake is a lie", "priority": "high"}
    answer = client.ask("call_tool", NAME, ticket)
    assert not answer.is_error, answer
    assert answer.structured_content["subject"] == "The cake is a lie"
    wrong = client.ask("call_tool", NAME, {**ticket, "priority": "none"})
    assert wrong.is_error
    another = json.dumps({**ticket, "subject": "There is no tea"})
    called = report_of("call.mjs", f"{served.url}/mcp", NAME, another)
    assert called["listed"]
    assert not called["result"].get("isError"), called
    # Another test may have made one before.
    assert [each["subject"] for each in desk.tickets()[-2:]] == [
        "The cake is a lie",
        "There is no tea",
    ]
    assert KEY not in keeper.content()


def test_the_document_changes(keeper: Page, client: Listening, desk: HelpDesk) -> None:
    """The page tells the difference; clients see it when somebody publishes.

    It is of another version of OpenAPI then.
    """
    _publish_tool(keeper, client)
    desk.release()
    keeper.goto("/admin/mcp_app/tool/openapi/")
    strike(keeper, keeper.get_by_role("link", name="Help desk"))
    strike(keeper, keeper.get_by_role("link", name="Read it again"))
    write(keeper, keeper.get_by_label("Path at the site"), "/api/schema/3.1/")
    strike(keeper, keeper.get_by_role("button", name="Read it again"))
    said(keeper, "The document was read again.")
    expect(keeper.get_by_role("heading", name="Changed there")).to_be_visible()
    section = keeper.locator("section", has_text="POST /api/tickets/")
    expect(section).to_contain_text("reporter")
    picture(keeper, "openapi-again")
    strike(keeper, keeper.get_by_role("button", name="Update 1 tool"))
    said(keeper, "1 working copy was changed.")
    assert "reporter" not in client.schema(NAME)["properties"]
    keeper.goto("/admin/mcp_app/tool/")
    keeper.get_by_role("link", name=NAME).first.click()
    press(keeper, "Save and publish…")
    press(keeper, "Publish version 2")
    said(keeper, "Version 2 is published.")
    client.sees(lambda: "reporter" in client.schema(NAME)["properties"], True)
    ticket = {"subject": "Cake again", "priority": "low", "reporter": "Ada"}
    answer = client.ask("call_tool", NAME, ticket)
    assert not answer.is_error, answer
    assert desk.tickets()[-1] == answer.structured_content
    assert answer.structured_content["reporter"] == "Ada"
