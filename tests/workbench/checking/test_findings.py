"""Findings as JSON, and whether one is a problem."""

from __future__ import annotations

from mcp_app.workbench.checking.findings import Finding, Grade, has_problem


def test_the_object_of_a_finding() -> None:
    finding = Finding("host", Grade.PROBLEM, "It is lost.", "Why.", "a line")
    assert finding.as_json() == {
        "rule": "host",
        "grade": "problem",
        "what": "It is lost.",
        "why": "Why.",
        "line": "a line",
    }


def test_only_a_problem_is_one() -> None:
    for grade in Grade:
        found = [Finding("a", Grade.GOOD, "x"), Finding("b", grade, "y")]
        assert has_problem(found) is (grade is Grade.PROBLEM)
