"""The page *Check* in a browser: its script sends the probes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.conftest import CLOSED, KEEPER
from tests.browser.test_publishing import picture, serious
from tests.newcomer.demo import demo_environment
from tests.newcomer.programs import CHECKOUT, Serving, run

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]


def test_a_server_is_looked_at_from_outside_and_inside(staff: Page) -> None:
    staff.goto("/admin/mcp_app/server/")
    staff.get_by_role("link", name="/mcp", exact=True).click()
    staff.get_by_role("link", name="Check").click()
    staff.get_by_role("button", name="Look", exact=True).click()
    through = staff.get_by_role("region", name="Through the proxy")
    good = through.get_by_text("What a stream sends comes at once.")
    expect(good).to_be_visible(timeout=PATIENCE_MS)
    for said in (
        "This site answers.",
        "The Host arrives as it was sent.",
        "All headers of clients arrive.",
        "Refusals reach clients as they are sent.",
        "Requests are served side by side.",
    ):
        expect(through.get_by_text(said)).to_be_visible()
    expect(through.get_by_text("Problem:")).to_have_count(0)
    picture(staff, "check")
    staff.get_by_role("button", name="Look here").click()
    here = staff.get_by_role("region", name="Here")
    expect(here.get_by_role("status")).to_be_visible()
    assert serious(staff) == []


def test_the_command_speaks_as_a_user(served: Serving, database: Path) -> None:
    """Where tokens alone let in: all revisions, with a token that is gone then."""
    command = [
        *(sys.executable, "manage.py", "mcp_check", f"{served.url}/mcp/{CLOSED}"),
        *("--server", CLOSED, "--user", KEEPER, "--json"),
    ]
    told = run(command, CHECKOUT, demo_environment(database))
    found = {each["rule"]: each for each in json.loads(told)}
    assert found["revisions"]["grade"] == "good", found["revisions"]
    assert found["processes"]["grade"] == "good", found
    assert "problem" not in {each["grade"] for each in found.values()}
