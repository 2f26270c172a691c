from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_app import ToolError, mcp
from mcp_app.kinds import findings

DEMO = {
    "current_time": "What time is it?",
    "roll_dice": "Roll dice",
    "book_table": "Book a table",
}


@pytest.fixture(autouse=True)
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the demo's declarations, and leave none of them to other tests."""
    for name in vars(mcp):
        monkeypatch.setattr(mcp, name, {})
    yield importlib.import_module("mcp_project.mcp")
    del sys.modules["mcp_project.mcp"]


def test_the_demo_declares_its_tools() -> None:
    titles = {name: mcp.tools[name].definition.title for name in DEMO}
    assert titles == DEMO
    for name in DEMO:
        assert mcp.tools[name].definition.description


def test_the_demo_leaves_lint_nothing_to_say() -> None:
    definitions = [mcp.tools[name].definition for name in DEMO]
    assert [found for each in definitions for found in findings(each)] == []


@pytest.mark.parametrize(
    ("zone", "mark"), [("UTC", "UTC"), ("Asia/Tokyo", "JST"), ("Asia/Kolkata", "IST")]
)
async def test_the_time_is_told_in_its_zone(demo: Any, zone: str, mark: str) -> None:
    said = await demo.current_time(zone)
    assert re.search(rf", \d\d:\d\d \({mark}\)$", said)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../../etc/passwd", "", "a\x00b"])
async def test_a_zone_that_is_none_is_told(demo: Any, zone: str) -> None:
    with pytest.raises(ToolError, match="There is no time zone"):
        await demo.current_time(zone)


def test_dice_have_their_sides(demo: Any) -> None:
    roll = demo.roll_dice(count=50, sides=2)
    assert set(roll.dice) <= {1, 2}
    assert len(roll.dice) == 50
    assert roll.total == sum(roll.dice)
    assert mcp.tools["roll_dice"].definition.output_schema is not None
