"""What a process says of itself, and how a row keeps it."""

from __future__ import annotations

from collections import Counter

import pytest

from mcp_app.models import Worker
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import Report

REPORT = Report(Counter({"default": 2}), {"tagged": 1}, (7, 8), 3, 5, "abc")


def test_a_report_is_kept_as_text() -> None:
    found = Report.of_text(REPORT.as_text())
    assert (found.streams, found.calls) == ({"default": 2}, {"tagged": 1})
    assert (list(found.sessions), found.lost) == ([7, 8], 3)
    assert (found.dropped, found.code) == (5, "abc")


@pytest.mark.parametrize("text", ["", '{"later":1}'])
def test_another_release_says_less_or_more(text: str) -> None:
    assert Report.of_text(text) == Report()


@pytest.mark.django_db
@pytest.mark.databases
def test_a_row_without_a_report_says_nothing() -> None:
    worker = Worker.objects.create(
        id="w", host="h", pid=1, started_ms=1, seen_ms=NowMilliseconds()
    )
    worker.refresh_from_db()
    assert worker.report_of_process() == Report()
    assert Worker.objects.beat("w", REPORT.as_text())
    worker.refresh_from_db()
    assert worker.report_of_process().lost == 3
    assert not Worker.objects.beat("gone", "")
