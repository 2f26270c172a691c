"""Tools that run as tasks: those that the suite wants, and some of ours."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Final

from mcp_app.catalog.registry import mcp
from mcp_app.interface.context import Context, SyncContext
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import Accepted, Elicit
from mcp_app.protocol.errors import InternalError

STEP_S: Final = 0.05
NAME: Final = {"type": "object", "properties": {"name": {"type": "string"}}}
YES: Final = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}


@mcp.tool(read_only=True)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@mcp.tool(task="optional", idempotent=True)
async def slow_compute(ctx: Context, seconds: float = 1, label: str = "") -> str:
    """Sleep, and say how far it is."""
    begun = time.monotonic()
    while (gone := time.monotonic() - begun) < seconds:
        ctx.progress(gone, seconds, f"{gone:.1f} s")
        await asyncio.sleep(min(STEP_S, seconds))
    return f"Computed {label}."


@mcp.tool(task="required")
def failing_job() -> str:
    """Fail after a second."""
    time.sleep(1)
    raise ToolError("The job failed.")


@mcp.tool(task="optional")
async def protocol_error_job() -> str:
    """Break the protocol after half a second."""
    await asyncio.sleep(0.5)
    raise InternalError("The job broke the protocol.")


@mcp.tool(task="optional")
async def confirm_delete(ctx: Context, filename: str) -> str:
    """Ask before a file is deleted."""
    answer: Any = await ctx.elicit(f"Delete {filename}?", YES, key="confirm")
    return f"Deleted {filename}." if isinstance(answer, Accepted) else "Left it."


@mcp.tool(task="optional")
def multi_input(ctx: SyncContext) -> str:
    """Ask two questions at once."""
    answers = ctx.ask(first=Elicit("First?", NAME), second=Elicit("Second?", NAME))
    return ", ".join(sorted(answers))


@mcp.tool(task="required", ask_first=True)
async def test_tool_with_task(ctx: Context) -> str:
    """Ask who it is, and go on as a task."""
    answer: Any = await ctx.elicit("Who are you?", NAME, key="user_name")
    ctx.as_task()
    await asyncio.sleep(0.5)
    return f"Done for {answer.data['name'] if isinstance(answer, Accepted) else '?'}."


def note(word: str, task: str | None) -> int:
    """Write a line for whoever kills this process; return how many are the same."""
    path = Path(os.environ["TASK_NOTES"])
    with path.open("a") as file:
        file.write(f"{word} {task} {os.getpid()} {time.time()}\n")
    return path.read_text().count(f"{word} {task} ")


def toil(ctx: SyncContext, state: str, seconds: float = 60) -> str:
    """Work for long, ask, or wait for a file before the end; the second time do not."""
    if note("start", ctx.task_id) > 1:
        seconds = 0
    if state == "parked":
        ctx.elicit("Go on?", YES, key="confirm")
    begun, may_end = time.monotonic(), Path(f"{os.environ['TASK_NOTES']}.end")
    try:
        while state == "running" and (gone := time.monotonic() - begun) < seconds:
            ctx.progress(gone, seconds)
            time.sleep(STEP_S)
        while state == "ending" and seconds and not may_end.exists():
            time.sleep(0.001)
    finally:
        note("end", ctx.task_id)
    return state


mcp.tool("toil", task="required")(toil)
mcp.tool("toil_again", task="required", rerun=True)(toil)
