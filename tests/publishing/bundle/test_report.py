"""What importing would do, in lines."""

from __future__ import annotations

import pytest

from mcp_app.publishing import bundle
from mcp_app.publishing.bundle.applying import MAX_VALUE_LENGTH, report_lines
from tests.publishing.bundle.content import REGISTRY, as_bytes, entry, exported, tool

pytestmark = pytest.mark.django_db

LONG = "Tells when the shop is open. " * 40


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("Open.", "Closed.", "“Open.” -> “Closed.”"),
        ("Open  now.", "Open now.", "“Open  now.” -> “Open now.”"),
        ("Open\nnow.", "Open now.", "“Open\\nnow.” -> “Open now.”"),
        ("Open\u200b now.", "Open now.", "“Open⟦U+200B⟧ now.” -> “Open now.”"),
        (f"{LONG}Ask.", f"{LONG}Go.", "shop is open. Ask.” -> “…"),
        (LONG, f"{LONG}\n", "open. ” -> “…"),
        (f"A {LONG}", f"B {LONG}", "…” -> “B Tells"),
    ],
)
def test_two_values_never_read_the_same(before: str, after: str, said: str) -> None:
    tool(description=before)
    file = exported()
    entry(file, "tools", "hours")["working"]["description"] = after
    comparison = bundle.compare_bundle(bundle.read_bundle(as_bytes(file)), REGISTRY)
    [line] = [
        each
        for each in report_lines(comparison, publish=False)
        if each.startswith("  description: ")
    ]
    assert said in line
    old, new = line.removeprefix("  description: ").split(" -> ")
    assert old != new
    assert max(len(old), len(new)) < MAX_VALUE_LENGTH + 20
