"""What the other site offers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TypedDict

from mcp_app import SyncContext, mcp
from tests.othersite.models import Shift


class Times(TypedDict):
    moment: datetime
    day: date
    time: time
    span: timedelta


@mcp.tool(read_only=True)
def times(moment: datetime, day: date, time: time, span: timedelta) -> Times:
    """Return what came."""
    return {"moment": moment, "day": day, "time": time, "span": span}


@mcp.tool
def plan(ctx: SyncContext, begins: datetime, wage: Decimal) -> datetime:
    """Write a shift of the caller; return when it begins."""
    who, lasts = ctx.user(), timedelta(hours=7.5)
    day, at = begins.date(), begins.time()
    shift = Shift(begins=begins, day=day, at=at, lasts=lasts, wage=wage, person=who)
    shift.save()
    shift.refresh_from_db()
    return shift.begins


@mcp.resource("shift://{number}")
def shift(number: int) -> dict[str, object] | None:
    rows = Shift._default_manager.filter(pk=number)
    return rows.values("begins", "lasts").first()


@mcp.prompt
def roster(day: date) -> str:
    return f"Who works on {day:%d.%m.%Y}?"


FIELDS = ["begins", "day", "at", "lasts", "wage", "person_id"]
mcp.open_model(Shift, fields=FIELDS, rows="all")
