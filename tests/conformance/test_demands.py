"""coverage.csv is complete, and its tests are there; those of docs/security.md too."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.apart import ROOT
from tests.conformance import demands
from tests.conformance.disabling import all_guards

TAKEN = {"S": 731, "L": 921}
"""How many rows the two lists of requirements have: none may get lost."""

MOST_UNENFORCED = 29
"""MUSTs that tests show and of which nothing says what enforces them: may shrink."""

HERE = "tests/conformance/test_demands.py"


def test_the_table_has_no_faults() -> None:
    assert demands.faults(demands.read_rows(), demands.guarded()) == []


def test_no_row_was_lost() -> None:
    ids = [row.id for row in demands.read_rows()]
    for list_, number in TAKEN.items():
        assert sum(id.startswith(f"{list_}-") for id in ids) >= number


def test_each_guard_is_there() -> None:
    for guard in all_guards():
        guard.check()


def test_no_enforcement_was_lost() -> None:
    enforced = set(demands.guarded())
    without = [
        row
        for row in demands.read_rows()
        if row.binding and row.tests and row.id not in enforced
    ]
    assert len(without) == MOST_UNENFORCED, "Say the smaller number here."
    assert all(row.reason for row in without), "The table says why there is nothing."


def test_the_figures_are_those_of_the_table() -> None:
    text = demands.DOCUMENT.read_text("utf-8")
    assert text == demands.drawn(text, demands.read_rows(), demands.guarded()), (
        "Run `python -m tests.conformance.demands`."
    )


def test_the_tests_that_the_security_page_names_are_there() -> None:
    text = (ROOT / "docs/security.md").read_text("utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", text))
    assert named
    assert [test for test in sorted(named) if not demands.is_there(test)] == []


def test_what_a_fault_is() -> None:
    row = demands.Row(id="A-1", strength="MUST", document="one", tests=HERE)
    assert demands.faults([row], ["A-1"]) == []
    tests = f"{HERE} {HERE}::test_what_a_fault_is {HERE}::test_gone tests/test_gone.py"
    for wrong, fault in (
        (replace(row, strength="WISH"), "There is no strength 'WISH'."),
        (replace(row, document=""), "It names no document."),
        (replace(row, tests=""), "It has neither a test nor a reason."),
        (replace(row, reason="so"), "The reason 'so' does not begin with its kind."),
        (replace(row, reason="planned: it"), "Nothing may wait for 'it'."),
        (replace(row, tests="", reason="note: so"), "No 'note' releases from a MUST."),
    ):
        assert demands.faults([wrong], []) == [f"A-1: {fault}"]
    assert demands.faults([replace(row, tests=tests), row], ["A-1", "A-1", "A-2"]) == [
        f"A-1: There is no {HERE}::test_gone.",
        "A-1: There is no tests/test_gone.py.",
        "A-1 has 2 rows.",
        "A-1 has 2 guards.",
        "A-2 has a guard, and no test.",
    ]
