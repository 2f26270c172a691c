"""What is said of the conversations; tests/process/test_proxies.py has real ones."""

from __future__ import annotations

import json

from mcp_app.protocol.revisions import REVISIONS
from mcp_app.workbench.checking.client import Part, Reply
from mcp_app.workbench.checking.findings import Grade
from mcp_app.workbench.checking.revisions import Step, judge_revisions


def reply(status: int, value: object) -> Reply:
    return Reply(status, {}, (Part(0.0, json.dumps(value)),))


FINE = [Step(version, "ping", reply(200, {}), {}) for version in REVISIONS]


def test_all_are_served() -> None:
    (found,) = judge_revisions(FINE)
    assert found.grade is Grade.GOOD
    assert found.what.endswith(f"{', '.join(REVISIONS)}.")


def test_one_fails() -> None:
    error = {"error": {"message": "Bad <thing>"}}
    wrong = Step("2025-11-25", "tools/list", reply(400, error), None)
    (found,) = judge_revisions([*FINE, wrong])
    assert found.grade is Grade.PROBLEM
    assert found.what == (
        "In revision 2025-11-25, tools/list failed (status 400): Bad <thing>"
    )


def test_who_is_nobody_learns_nothing() -> None:
    wrong = Step("2025-11-25", "initialize", reply(401, {}), None)
    (found,) = judge_revisions([wrong])
    assert found.grade is Grade.UNKNOWN
    assert "--user" in found.why
    (found,) = judge_revisions([wrong], shown=True)
    assert found.grade is Grade.UNKNOWN
    assert "does not accept the token" in found.what


def test_a_rate_is_no_fault() -> None:
    wrong = Step("2025-11-25", "tools/list", reply(429, {}), None)
    (found,) = judge_revisions([*FINE, wrong])
    assert found.grade is Grade.UNKNOWN
