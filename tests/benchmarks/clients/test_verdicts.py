"""What is made of a driver's report: whose fault it is if something is missing."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.clients.catalog import CALLS, HEALTH_CHECK, OFFERS, Client
from benchmarks.clients.verdicts import Expectation, Reports, sentence, verdict

EXPECTED = Expectation(
    247, {"wrong": "No such token.", "missing": "Send one.", "revoked": "Revoked."}
)
CLIENT = Client(name="a", title="A 1", packages=("a==1",), driver="drive_a.py")
SEEN = dict.fromkeys((*CALLS, *OFFERS), True)
WHOLE = {"tools": 247, "added": "42", "seen": SEEN, "revision": "2025-11-25"}
GOOD: dict[str, dict[str, Any]] = {
    "http": WHOLE,
    "sse": {**WHOLE, "revision": "2024-11-05"},
    "stdio": WHOLE,
    "right": {"tools": 247, "added": "42"},
    "wrong": {"error": "HTTP 401: No such token."},
    "missing": {"error": "Send one."},
    "revoked": {"added": "42", "after": "Revoked."},
    "restart": {"added": "42", "after": "42"},
}


def client(*, lacks: set[str] | None = None, limits: set[str] | None = None) -> Client:
    return Client(
        name="a",
        title="A 1",
        packages=("a==1",),
        driver="drive_a.py",
        lacks=frozenset(lacks or ()),
        limits=frozenset(limits or ()),
    )


def with_report(probe: str, **changed: object) -> Reports:
    return {**GOOD, probe: {**GOOD[probe], **changed}}


def test_all_is_right() -> None:
    found = verdict(CLIENT, GOOD, EXPECTED)
    assert not found.faults
    assert found.cells["revision"] == "2025-11-25"
    assert {found.cells[each] for each in found.cells if each != "revision"} == {"+"}


@pytest.mark.parametrize(
    ("probe", "changed", "facet"),
    [
        ("sse", {"error": "Connection closed"}, "sse"),
        ("stdio", {"added": "no answer after 60 s"}, "stdio"),
        ("right", {"tools": 246}, "tools"),
        ("http", {"tools": 100}, "pages"),
        ("sse", {"seen": {**SEEN, "audio": "nothing"}}, "audio"),
        ("stdio", {"seen": {**SEEN, "prompts": "nothing"}}, "prompts"),
        ("right", {"error": "401"}, "right"),
        ("wrong", {"error": "401"}, "wrong"),
        ("revoked", {"after": "no answer after 20 s"}, "revoked"),
        ("restart", {"after": "Session not found"}, "restart"),
    ],
)
def test_what_is_missing_is_our_fault_unless_the_client_is_known_for_it(
    probe: str, changed: dict[str, object], facet: str
) -> None:
    reports = with_report(probe, **changed)
    ours = verdict(CLIENT, reports, EXPECTED)
    assert ours.cells[facet] == "-"
    assert [each.split(":")[0] for each in ours.faults] == [f"A 1, {facet}"]
    theirs = verdict(client(limits={facet}), reports, EXPECTED)
    assert not theirs.faults
    assert theirs.cells[facet] not in ("+", "-")


def test_whoever_gets_better_than_known_has_a_plus() -> None:
    found = verdict(client(limits={"wrong", "pages"}), GOOD, EXPECTED)
    assert found.cells["wrong"] == found.cells["pages"] == "+"


def test_what_a_client_does_not_have_is_not_looked_at() -> None:
    lacking = client(lacks={"http", "restart", "revoked", "structured"})
    reports = {
        "sse": {**WHOLE, "seen": {**SEEN, "structured": False}},
        **{each: GOOD[each] for each in ("stdio", "right", "wrong", "missing")},
    }
    found = verdict(lacking, reports, EXPECTED)
    assert not found.faults
    assert not lacking.lacks & found.cells.keys()


def test_a_driver_that_ended_without_a_report_is_a_fault() -> None:
    found = verdict(CLIENT, {**GOOD, "http": {"error": "ended"}}, EXPECTED)
    assert found.cells["http"] == "-"
    assert "A 1, http: ended" in found.faults


def test_a_health_check_need_not_call() -> None:
    checks = client(lacks=set(HEALTH_CHECK))
    seen: dict[str, Any] = {"seen": {}}
    reports = {**dict.fromkeys(("http", "sse", "stdio", "right"), seen)}
    reports |= {each: GOOD[each] for each in ("wrong", "missing")}
    found = verdict(checks, reports, EXPECTED)
    assert not found.faults
    assert found.cells["stdio"] == "+"
    assert found.cells["revision"] == "."


def test_a_sentence_fits_into_a_cell() -> None:
    assert sentence(
        "401 for url 'http://127.0.0.1:1/mcp'\nFor more information: x"
    ) == ("“401 for url …”")
    assert sentence("Failed: <html> <b>Not|Found</b>") == "“Failed: Not Found”"
    assert sentence("no answer after 20 s") == "no answer after 20 s"
    long = sentence("word " * 50)
    assert long.endswith("word …”")
    assert len(long) < 100
