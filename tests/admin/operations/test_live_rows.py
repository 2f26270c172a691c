"""What runs now, in words: how long ago, how many more, and what a call is called."""

from __future__ import annotations

import json

import pytest

from mcp_app.admin.operations import live
from mcp_app.admin.operations.live import call_name
from mcp_app.models import CallWriter, Stream

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("age_ms", "ago"),
    [
        # The database's clock may have jumped.
        (-5_000, "0 s ago"),
        (999, "0 s ago"),
        (MINUTE - 1, "59 s ago"),
        (MINUTE, "1 min ago"),
        (HOUR - 1, "59 min ago"),
        (HOUR, "1 h ago"),
        (2 * DAY - 1, "47 h ago"),
        (2 * DAY, "2 days ago"),
        (9 * DAY, "9 days ago"),
    ],
)
def test_how_long_ago(age_ms: int, ago: str) -> None:
    assert live._moment_ago(age_ms).ago == ago


@pytest.mark.parametrize(
    ("tool", "requests", "name"),
    [
        ("add", 1, "add"),
        ("a\u202eb", 1, "a⟦U+202E⟧b"),
        ("", [1], "a batch of 1"),
        ("", [1, "2"], "a batch of 2"),
        ("", 1, "a request that does not call a tool"),
        ("", "seven", "a request that does not call a tool"),
    ],
)
def test_what_a_call_is_called(tool: str, requests: object, name: str) -> None:
    assert call_name(Stream(tool=tool, requests=json.dumps(requests))) == name


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("count", "more"),
    [
        (0, ""),
        (2, ""),
        (3, "and 1 more"),
        (6, "and 4 more"),
        (7, "and more than 4 more"),
        (9, "and more than 4 more"),
    ],
)
def test_how_many_more(count: int, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SHOWN", 2)
    monkeypatch.setattr(live, "COUNTED", 4)
    for number in range(count):
        CallWriter.objects.create(id=str(number), number=1, written_ms=0)
    rows = CallWriter.objects.order_by("pk")
    assert live._more_text(rows, [*rows[:3]]) == more
