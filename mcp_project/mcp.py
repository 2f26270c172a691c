"""The demo's tools: a plain one, one with a structured answer, one that asks back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from mcp_app import Accepted, Context, ToolError, mcp


@mcp.tool(title="What time is it?", read_only=True)
async def current_time(time_zone: str = "UTC") -> str:
    """Tell the date and time in a time zone.

    Args:
        time_zone: A name of the IANA list, for example Europe/Lisbon.
    """
    try:
        now = datetime.now(ZoneInfo(time_zone))
    except (ZoneInfoNotFoundError, ValueError):
        raise ToolError(f"There is no time zone {time_zone!r}.") from None
    return now.strftime("%A, %d %B %Y, %H:%M (%Z)")


@dataclass(frozen=True)
class Roll:
    """What was thrown, and its sum."""

    dice: list[int]
    total: int


@mcp.tool(title="Roll dice", read_only=True)
def roll_dice(
    count: Annotated[int, Field(ge=1, le=100)] = 1,
    sides: Annotated[int, Field(ge=2, le=1000)] = 6,
) -> Roll:
    """Roll some dice and add them up.

    Args:
        count: How many dice are thrown.
        sides: How many sides each of them has.
    """
    dice = [secrets.randbelow(sides) + 1 for _ in range(count)]
    return Roll(dice, sum(dice))


@dataclass(frozen=True)
class Guest:
    """The form that `book_table` asks the person to fill in."""

    name: str
    people: int = 2


@mcp.tool(title="Book a table", read_only=False, destructive=False)
async def book_table(ctx: Context, day: str) -> str:
    """Book a table for a day; asks who is coming. It is a demo: nothing is kept.

    Args:
        day: The day of the visit, for example Friday or 24 December.
    """
    answer = await ctx.elicit(f"Who is coming on {day}?", Guest)
    if not isinstance(answer, Accepted):
        return "No table was booked."
    guest = answer.data
    return f"A table for {guest.people} is booked on {day} for {guest.name}."
