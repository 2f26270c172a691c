"""Rows that processes cannot serve, as the pages show it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.test import Client

from mcp_app.admin.page import broken_rows
from mcp_app.models import Tool, Worker
from mcp_app.models.workers import Report
from tests.admin.pages import page, page_of, text_of
from tests.published import published, stopped

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

PLACE: dict[str, Any] = {"pid": 1, "host": "here", "started_ms": 0}
REASON = "No function is registered as “shop.stock”."


def working(name: str, *broken: Tool, age_s: float = 0) -> Worker:
    """A process that beat so long ago, and cannot serve these rows."""
    lacking = tuple(
        ("tool", str(row.pk), row.published_id or 0, REASON) for row in broken
    )
    report = Report(code="c0de", broken=lacking).as_text()
    seen = int((time.time() - age_s) * 1_000)
    return Worker.objects.create(pk=name, seen_ms=seen, report=report, **PLACE)


def tool(name: str = "stock", **columns: Any) -> Tool:
    return published(Tool(name=name, title=name.title(), **columns))


def shown(client: Client, *, state: str = "") -> list[str]:
    """The titles of the list, in order, with their states."""
    response = client.get(page("tool"), {"state": state} if state else {})
    rows = response.context["cl"].result_list
    return [f"{row}: {row.broken or row.state.label}" for row in rows]


def test_what_one_of_two_processes_lacks_is_broken(admin_client: Client) -> None:
    row, other = tool(), tool("hours")
    working("one", row)
    working("two")
    reason = f"In 1 of 2 processes: {REASON}"
    assert shown(admin_client) == [f"Stock: {reason}", "Hours: Published"]
    assert shown(admin_client, state="broken") == [f"Stock: {reason}"]
    assert shown(admin_client, state="published") == ["Hours: Published"]
    for name in ("change", "publish", "who"):
        text = text_of(admin_client, page_of(row, name))
        assert reason in text, name
        assert "Clients already see exactly this" not in text
    text = text_of(admin_client, page_of(other, "publish"))
    assert "Clients already see exactly this" in text


def test_it_is_no_longer_broken_once_that_process_is_gone(admin_client: Client) -> None:
    row = tool()
    gone = working("one", row)
    working("two", row, age_s=60)
    assert shown(admin_client) == [f"Stock: {REASON}"]
    gone.delete()
    assert shown(admin_client) == ["Stock: Published"]


def test_what_is_stopped_is_stopped_first(admin_client: Client) -> None:
    row = tool()
    working("one", row)
    stopped(row)
    assert shown(admin_client, state="broken") == []
    assert len(shown(admin_client, state="stopped")) == 1


def test_a_sorted_list_stays_as_it_was_sorted(admin_client: Client) -> None:
    tool("a")
    working("one", tool("b"))
    response = admin_client.get(page("tool"), {"o": "1"})
    assert [str(row) for row in response.context["cl"].result_list] == ["A", "B"]
    assert shown(admin_client)[0].startswith("B:")


def test_a_report_of_another_release_is_no_report(admin_client: Client) -> None:
    row = tool()
    working("one", row)
    Worker.objects.create(pk="two", seen_ms=int(time.time() * 1_000), **PLACE)
    assert shown(admin_client) == [f"Stock: {REASON}"]


def test_a_report_about_an_earlier_version_does_not_count(admin_client: Client) -> None:
    row = tool()
    working("one", row)
    row.title = "Mended"
    row.save()
    Tool.objects.publish([row])
    assert shown(admin_client) == ["Mended: Published"]
    Tool.objects.unpublish([row])
    assert shown(admin_client) == ["Mended: Not published"]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        7,
        "tool",
        [None, 7, [], ["tool"], ["tool", "1", REASON]],
        [["tool", 1, 0, REASON], ["tool", "x", 0, REASON], ["tool", "1", 0, None]],
        [["tool", "9" * 30, 0, REASON], [["tool"], "1", 0, REASON]],
        [["tool", "1", 0, REASON, "of a later release"]],
    ],
)
def test_a_report_of_another_shape_breaks_no_page(
    admin_client: Client, broken: object
) -> None:
    report = json.dumps({"code": "c0de", "broken": broken})
    seen = int(time.time() * 1_000)
    Worker.objects.create(pk="one", seen_ms=seen, report=report, **PLACE)
    tool()
    assert shown(admin_client) == ["Stock: Published"]
    assert admin_client.get("/admin/mcp_app/").status_code == 200


def test_processes_are_not_counted_where_a_report_is_cut(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken_rows, "MOST_BROKEN", 1)
    working("one", tool("a"))
    working("two", tool("b"))
    assert shown(admin_client) == [f"A: {REASON}", f"B: {REASON}"]
