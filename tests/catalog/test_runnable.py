"""What is ready to be run: where an async function needs a thread of its own."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_app.catalog.runnable import ArgumentsRefused, Runnable, Style
from mcp_app.protocol.schemas import Violation


def runnable(style: Style, **more: Any) -> Runnable[object]:
    return Runnable(
        run=lambda: None, style=style, bind=dict, convert=lambda output: output, **more
    )


@pytest.mark.parametrize(
    ("atomic", "database"), [*product((None, False, True), (False, True))]
)
def test_what_needs_a_thread(atomic: bool | None, database: bool) -> None:
    needs = database or atomic is True
    for style in ("inline", "async", "sync"):
        made = runnable(style, atomic=atomic, database=database)
        assert made.needs_thread is needs
        # Only what waits, and needs nothing around it, is awaited as it is.
        assert made.direct is (style == "async" and not needs)


def test_a_refusal_names_every_violation() -> None:
    violations = [Violation(f"$.{name}", "type", f"{name} is wrong") for name in "ab"]
    refused = ArgumentsRefused(violations)
    assert str(refused) == "a is wrong; b is wrong"
    assert refused.violations == violations
