from __future__ import annotations

import re

import pytest

from mcp_app import ToolError, mcp
from mcp_app.kinds import findings
from mcp_project.mcp import current_time, roll_dice


def test_the_demo_declares_its_tools() -> None:
    titles = {name: mcp.tools[name].definition.title for name in DEMO}
    assert titles == DEMO
    for name in DEMO:
        assert mcp.tools[name].definition.description


def test_the_demo_leaves_lint_nothing_to_say() -> None:
    definitions = [mcp.tools[name].definition for name in DEMO]
    assert [found for each in definitions for found in findings(each)] == []


DEMO = {
    "current_time": "What time is it?",
    "roll_dice": "Roll dice",
    "book_table": "Book a table",
}


@pytest.mark.parametrize(
    ("zone", "mark"), [("UTC", "UTC"), ("Asia/Tokyo", "JST"), ("Asia/Kolkata", "IST")]
)
async def test_the_time_is_told_in_its_zone(zone: str, mark: str) -> None:
    said = await current_time(zone)
    assert re.search(rf", \d\d:\d\d \({mark}\)$", said)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../../etc/passwd", "", "a\x00b"])
async def test_a_zone_that_is_none_is_told(zone: str) -> None:
    with pytest.raises(ToolError, match="There is no time zone"):
        await current_time(zone)


def test_dice_have_their_sides() -> None:
    roll = roll_dice(count=50, sides=2)
    assert set(roll.dice) <= {1, 2}
    assert len(roll.dice) == 50
    assert roll.total == sum(roll.dice)
    assert mcp.tools["roll_dice"].definition.output_schema is not None
