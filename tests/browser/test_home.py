"""The home page: from there, a person without Python publishes a first tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import log_in, open_page
from tests.browser.inspector import Inspector
from tests.browser.test_publishing import picture, press, said
from tests.newcomer.demo import demo, demo_environment
from tests.newcomer.programs import CHECKOUT, Serving, run

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

HOME: Final = "/admin/mcp_app/"
NAME: Final = "nora"
PASSWORD: Final = "a-Long-enough-1"
MADE: Final = f"""
from django.contrib.auth.models import Permission, User
nora = User.objects.create_user({NAME!r}, password={PASSWORD!r}, is_staff=True)
acts = ("add", "change", "view")
names = [f"{{act}}_{{what}}" for act in acts for what in ("tool", "prompt")]
ours = Permission.objects.filter(content_type__app_label="mcp_app")
nora.user_permissions.set(ours.filter(codename__in=[*names, "publish"]))
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return tmp_path / "fresh.sqlite3"


@pytest.fixture
def fresh(rows: Path) -> Iterator[Serving]:
    with demo(rows) as served:
        yield served


@pytest.fixture
def nora(browser: Browser, fresh: Serving, rows: Path) -> Iterator[Page]:
    manage = [sys.executable, "manage.py", "shell", "-v", "0", "-c", MADE]
    run(manage, CHECKOUT, demo_environment(rows))
    with open_page(browser, fresh) as page:
        page.goto("/admin/")
        log_in(page, NAME, PASSWORD)
        yield page


def test_a_first_tool_from_the_home_page(
    nora: Page, fresh: Serving, tmp_path: Path
) -> None:
    nora.goto(HOME)
    steps = nora.locator(".mcp-steps li")
    expect(steps).to_have_count(3)
    expect(steps.first).to_contain_text("To do")
    picture(nora, "home")
    steps.get_by_role("link", name="Add a tool").click()
    nora.get_by_role("link", name="Write a text").click()
    # Its script makes the name of what is typed.
    nora.wait_for_load_state()
    nora.locator("#id_title").press_sequentially("First steps")
    nora.locator("#id_description").fill(
        "Says when the shop is open. Use it if somebody asks for the hours."
    )
    nora.locator("#id_text").fill("From nine to five.")
    nora.get_by_label("Nothing: it only reads").check()
    press(nora, "Save and publish…")
    press(nora, "Publish version 1")
    said(nora, "Version 1 is published. Clients see it now.")
    client = Inspector(f"{fresh.url}/mcp", "modern", tmp_path)
    tools = client.result("tools/list")["tools"]
    assert "first-steps" in {tool["name"] for tool in tools}
    nora.goto(HOME)
    expect(steps.first).to_contain_text("Done")
    nora.get_by_role("searchbox", name="Find").fill("first STEPS")
    nora.keyboard.press("Enter")
    expect(nora.locator("#id_title")).to_have_value("First steps")


@pytest.mark.long
def test_what_the_home_page_copies(staff: Page, served: Serving) -> None:
    staff.context.grant_permissions(["clipboard-read", "clipboard-write"])
    staff.goto(HOME)
    copy: Callable[[], None] = staff.get_by_role(
        "button", name=f"Copy {served.url}/mcp", exact=True
    ).click
    copy()
    expect(staff.locator("#mcp-address-default-copied")).to_have_text("Copied.")
    assert staff.evaluate("navigator.clipboard.readText()") == f"{served.url}/mcp"
