"""What the site offers to MCP clients."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone, translation

from mcp_app import Accepted, AccessRequest, Context, SyncContext, ToolError, mcp
from tests.testing.site.parcels.models import Parcel

CHANGE = "parcels.change_parcel"
SENT: list[str] = []
"""The numbers of parcels about which a mail went out, once committed."""


@dataclass
class Sure:
    sure: bool


@mcp.rule("own-numbers", arguments=True)
def is_own_number(asked: AccessRequest) -> bool:
    """Let people at parcels that begin with their name's first letter."""
    number = str((asked.arguments or {}).get("number", ""))
    return not number or Parcel.objects.filter(number=number).exists()


@mcp.tool(read_only=True)
def parcel_get(number: str) -> dict[str, str]:
    """Look a parcel up."""
    parcel = Parcel.objects.filter(number=number).first()
    if parcel is None:
        raise ToolError(f"There is no parcel {number}.")
    return {"number": parcel.number, "state": parcel.state}


@mcp.tool(read_only=True)
async def parcel_count(state: str = "") -> int:
    """Count parcels."""
    parcels = Parcel.objects.filter(state=state) if state else Parcel.objects.all()
    return await parcels.acount()


@mcp.tool(permission=CHANGE)
def parcel_send(ctx: SyncContext, number: str) -> str:
    """Send a parcel, once the person is sure."""
    answer = ctx.elicit(f"Really send {number}?", Sure)
    if not isinstance(answer, Accepted) or not answer.data.sure:
        return f"{number} stays here."
    Parcel.objects.filter(number=number).update(state="sent")
    return f"{number} was sent."


@mcp.tool(permission=CHANGE)
async def parcel_return(ctx: Context, number: str) -> str:
    """Take a parcel back, with steps that happen once."""
    ctx.progress(1, 2, "Look")
    answer = await ctx.elicit("Is it back?", Sure)
    if not isinstance(answer, Accepted):
        return f"{number} is {type(answer).__name__.lower()}."
    await ctx.once("mark", Parcel.objects.filter(number=number).update, state="back")
    ctx.progress(2, 2, "Marked")
    ctx.log("info", {"number": number})
    user = await ctx.user()
    return f"{number} is back, says {user and user.get_username()}."


@mcp.tool(atomic=True)
def parcel_add(number: str, fail: bool = False) -> str:
    """Add a parcel in a transaction, and mail when it is committed."""
    Parcel.objects.create(number=number)
    if fail:
        raise ValueError("The label printer is on fire.")
    transaction.on_commit(lambda: SENT.append(number))
    return number


@mcp.tool(atomic=True)
async def parcel_add_later(number: str) -> str:
    """Add a parcel from async code, in a transaction."""
    await Parcel.objects.acreate(number=number)
    if number == "broken":
        raise ValueError("The label printer is on fire.")
    return number


@mcp.tool(read_only=True)
async def describe(ctx: Context, number: str) -> str:
    """Let the client's model write a line about a parcel."""
    roots = await ctx.list_roots()
    said = await ctx.sample(f"Describe {number}.", max_tokens=20)
    return f"{said.text} ({', '.join(each.uri for each in roots)})"


@mcp.tool(read_only=True)
def abroad() -> str:
    """Work in another language and zone, and forget to go back."""
    translation.activate("de")
    timezone.activate("Asia/Tokyo")
    return "abroad"


@mcp.tool(read_only=True)
def interrupted() -> str:
    """Meet a Ctrl+C."""
    raise KeyboardInterrupt


@mcp.tool(read_only=True)
async def parcel_watch(ctx: Context) -> str:
    """Wait for a parcel for a long time."""
    ctx.progress(1, message="It is on its way")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("Nobody waits any more.", file=sys.stderr)  # noqa: T201 - a test reads it
        raise
    return "It is here."


@mcp.tool(read_only=True, rule="own-numbers")
def parcel_label(number: str) -> str:
    """Print a label of a parcel that is there."""
    return f"Label of {number}"


@mcp.tool(read_only=True)
def uses_a_client() -> Any:
    """Do what no tool may do."""
    from mcp_app.test import Client  # noqa: PLC0415 - only tests have it

    return Client().call("parcel_count").data


@mcp.resource("parcel://{number}")
def parcel(number: str) -> dict[str, str]:
    """Return one parcel."""
    return {"number": number, "state": Parcel.objects.get(number=number).state}


@mcp.prompt
def complaint(number: str) -> str:
    """Write about a parcel that is late."""
    return f"Write that {number} is late."


@mcp.complete("complaint", "number")
def complete_number(value: str) -> list[str]:
    numbers = Parcel.objects.filter(number__startswith=value).order_by("number")
    return list(numbers.values_list("number", flat=True))
