"""What happens now, as staff see it: a call that hangs, and the session behind it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from mcp_app.server.outcome import STOPPED_CALL
from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_publishing import picture, said, serious
from tests.newcomer.programs import Serving
from tests.process.streaming import CLIENT, Answer, Session, called

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

LIVE = "/admin/mcp_app/session/live/"


def hanging(session: Session) -> Answer:
    answer = session.called("book_table", day="Friday")
    return answer.until(lambda each: each.messages)


def refused(answer: Answer) -> str:
    message: str = answer.whole().messages[-1]["error"]["message"]
    return message


def test_a_call_that_hangs_is_cancelled_and_its_session_closed(
    staff: Page, served: Serving
) -> None:
    url = f"{served.url}/mcp"
    called(url, "order_status", number=1_001).whole()
    staff.goto("/admin/mcp_app/")
    assert serious(staff) == []
    staff.get_by_role("link", name="What happens now").click()
    none = staff.get_by_role("heading", name="Calls that can be cancelled (0)")
    expect(none).to_be_visible()
    rows = staff.get_by_role("row").filter(has_text=CLIENT["name"])
    # The call before was one without a session.
    expect(rows).to_contain_text("no session")
    mine = rows.filter(has=staff.get_by_role("button"))
    expect(mine).to_have_count(0)
    expect(staff.get_by_role("button", name="Live")).to_have_attribute(
        "aria-pressed", "true"
    )

    session = Session(url)
    standing = session.standing()
    answer = hanging(session)
    # The page is drawn again by itself, and says what the process has said by then.
    row = staff.get_by_role("row").filter(has_text="book_table")
    expect(row).to_contain_text("nobody")
    stream = mine.locator("[data-label='Connected by']")
    expect(stream).to_contain_text("listens", timeout=PATIENCE_MS)
    picture(staff, "live")

    row.get_by_role("button", name="Cancel").click()
    said(staff, "Cancelled: book_table. Its client has been told.")
    assert refused(answer) == STOPPED_CALL
    expect(none).to_be_visible()
    # The session goes on.
    assert session.request("ping").whole().status == 200

    mine.get_by_role("button", name="Close session").click()
    said(staff, "Closed. The client opens a new session when it next calls.")
    standing.whole()
    assert session.request("ping").whole().status == 404
    expect(mine).to_have_count(0)


def test_it_stands_still_where_it_is_told_to_and_says_when_it_is_old(
    staff: Page, served: Serving
) -> None:
    called(f"{served.url}/mcp", "order_status", number=1_001).whole()
    parts: list[str] = []
    staff.clock.install()
    staff.on("request", lambda each: parts.append(each.url))
    staff.goto(LIVE)
    staff.wait_for_load_state("load")
    button = staff.get_by_role("button", name="Live")
    shown_time = staff.locator("[data-mcp-live-time] time")
    shown_time.evaluate("time => time.textContent = ''")

    def asked() -> list[str]:
        return [each.rpartition("part=")[2] for each in parts if "part=" in each]

    with staff.expect_response("**part=clients"):
        staff.clock.run_for(5_000)
    assert sorted(asked()) == ["calls", "clients", "state", "workers"]
    expect(shown_time).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "false")
    staff.clock.run_for(60_000)
    assert len(asked()) == 4

    staff.context.clear_cookies()
    button.press("Enter")
    staff.clock.run_for(5_000)
    expect(staff.locator("[data-mcp-live-status]")).to_contain_text("Not updated since")


@pytest.mark.long
def test_a_call_is_cancelled_without_scripts(scriptless: Page, served: Serving) -> None:
    page = scriptless
    session = Session(f"{served.url}/mcp")
    answer = hanging(session)
    page.goto(LIVE)
    expect(page.get_by_role("button", name="Live")).to_have_count(0)
    page.get_by_role("link", name="Refresh").click()
    page.get_by_role("button", name="Cancel book_table").click()
    said(page, "Cancelled: book_table.")
    assert refused(answer) == STOPPED_CALL
    assert session.close().whole().status == 204
