"""Calls that wait for a person, decided by staff in the admin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.hands import MOUSE, Hands
from tests.browser.test_tokens import look
from tests.newcomer.demo import demo_environment
from tests.newcomer.programs import CHECKOUT, run

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]

HOME: Final = "/admin/mcp_app/"
# The tool is another by now, so that nothing runs in the shop.
SCRIPT: Final = """
import json
from tests.admin.tasks.test_task_admin import task
refusal = {"status": "completed", "result": {"isError": True}}
state = {"text": SENTENCE, "tool": "", "permission": "", "refusal": refusal}
principal = {"kind": "drf", "user_id": "77", "user_name": "ana", "client": "",
    "scopes": [], "permissions": None, "scope": None}
client = {"name": "desk", "version": "2"}
caller = {"principal": principal, "client": client, "capabilities": {}, "headers":
    {"Host": "localhost"}, "path": "/mcp"}
task("sales_report", status="approval", person="u77", caller=json.dumps(caller),
    arguments=json.dumps({"note": "long " * 500}),
    state=json.dumps({"approval": state}))
"""


def wait_for_a_person(database: Path, sentence: str) -> None:
    script = SCRIPT.replace("SENTENCE", repr(sentence))
    manage = [sys.executable, "manage.py", "shell", "-v", "0", "-c", script]
    run(manage, CHECKOUT, demo_environment(database))


def test_a_call_is_approved_in_three_clicks(staff: Page, database: Path) -> None:
    sentence = "Refund 300.00 EUR for order 1001"
    wait_for_a_person(database, sentence)
    staff.goto(HOME)
    hands = Hands(staff, MOUSE)
    hands.follow("Show them")
    look(staff, "approvals")
    hands.follow(sentence)
    expect(staff.get_by_role("heading", level=1)).to_have_text(sentence)
    look(staff, "approval")
    staff.set_viewport_size({"width": 390, "height": 844})
    reason, time = staff.get_by_label("Why not"), staff.locator("[data-mcp-live-time]")
    reason.press_sequentially("Ask the customer")
    # What has the focus is never drawn again.
    reason.blur()
    expect(time).not_to_have_text(time.inner_text())
    expect(reason).to_have_value("Ask the customer")
    hands.press_button("Approve")
    expect(staff.locator(".messagelist")).to_contain_text("Approved. It runs now.")
    assert hands.steps == 3
    expect(staff.get_by_role("link", name=sentence)).to_have_count(0)


def test_a_call_is_denied_without_scripts(scriptless: Page, database: Path) -> None:
    sentence = "Refund 12.00 EUR for order 1017"
    wait_for_a_person(database, sentence)
    scriptless.goto(HOME)
    Hands(scriptless, MOUSE).follow("Show them")
    scriptless.get_by_role("link", name=sentence).click()
    scriptless.get_by_text("Show all").click()
    scriptless.get_by_label("Why not").fill("Ask the customer first.")
    # This key never approves.
    scriptless.get_by_label("Why not").press("Enter")
    denied = "Denied. Nothing has happened."
    expect(scriptless.locator(".messagelist")).to_contain_text(denied)
