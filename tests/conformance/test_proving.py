"""Without its guard a demand has a test that fails; if not, it is named."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.conformance.disabling import AnyGuard, Guard, all_guards
from tests.conformance.proving import by_demand, chosen, failed, failures, report, tried

SEED = 20260743
QUICK = (
    "L-BASE-035",
    "L-CACHE-004",
    "L-ELICIT-023",
    "L-HEAD-014",
    "L-MRTR-037",
    "L-RES-025",
    "L-SAMPLE-015",
    "S-ELICIT-001",
    "S-HTTP-003",
    "S-STDIO-006",
)
"""Demands whose tests take no time, with guards of as many modules."""

ANNOTATION = "test_an_annotation_is_unique_without_regard_to_case"
"""It shows L-HEAD-014."""


@pytest.fixture(scope="module")
def guards() -> Mapping[str, AnyGuard]:
    return by_demand(all_guards())


def test_different_enforcements_are_chosen_first() -> None:
    many = Guard(str.strip, returns=None, demands=("A-0", "A-1", "A-2"))
    one = Guard(str.strip, returns=True, demands=("A-3",))
    guards = by_demand([many, one])
    assert {guards[demand] for demand in chosen(guards, SEED, 2)} == {many, one}
    assert len(chosen(guards, SEED, 9)) == 4
    assert chosen(guards, SEED, 3) == chosen(guards, SEED, 3)


@pytest.mark.long
def test_a_named_test_fails_without_what_enforces_it(
    guards: Mapping[str, AnyGuard],
) -> None:
    modules = {str(guards[demand]).rpartition(".")[0] for demand in QUICK}
    assert len(modules) == len(QUICK)
    # What takes its time is to begin: two of them at once.
    results = dict(tried(QUICK, guards, 2))
    assert [demand for demand in QUICK if not results[demand]] == []


@pytest.mark.long
def test_what_still_passes_is_no_proof() -> None:
    test = f"tests/protocol/test_headers.py::{ANNOTATION}"
    assert failed("S-PING-001", [test]) == ""
    assert failed("L-HEAD-014", [f"{test}_which_is_not_there"]) == ""


@pytest.mark.long
def test_a_test_that_failed_proves_whatever_it_names() -> None:
    test = f"tests/protocol/test_headers.py::{ANNOTATION}"
    # The others have no test that could fail.
    tests = {"L-HEAD-014": [test], "A-1": [test, "gone"], "A-2": ["gone"]}
    assert failures(tests, tests) == {"L-HEAD-014": test, "A-1": test, "A-2": ""}


def test_what_has_no_proof_is_named(
    capsys: pytest.CaptureFixture[str], guards: Mapping[str, AnyGuard]
) -> None:
    assert report([("S-BASE-004", "a.py::test")], guards) == 0
    assert "no test fails" not in capsys.readouterr().out
    assert report([("S-BASE-004", ""), ("S-PING-001", "a.py::test")], guards) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "S-BASE-004: no test fails without "
        "mcp_app.protocol.envelope._is_id returns None."
    )
