"""Fixtures of the suite that answer, report and notify, and ask nothing."""

from __future__ import annotations

import asyncio
from typing import Annotated

from mcp_app import Context, Header, ToolError, mcp

STEP_S = 0.05
COMPLETIONS = ("test", "testValue1", "testValue2")


@mcp.function("conformance.error")
async def error() -> str:
    raise ToolError("This tool intentionally returns an error for testing")


@mcp.function("conformance.progress")
async def progress(ctx: Context) -> str:
    ctx.progress(0, 100)
    for percent in (50, 100):
        await asyncio.sleep(STEP_S)
        ctx.progress(percent, 100)
    return "Tool with progress executed successfully"


@mcp.function("conformance.logging")
async def logging(ctx: Context) -> str:
    ctx.log("info", "Tool execution started")
    for message in ("Tool processing data", "Tool execution completed"):
        await asyncio.sleep(STEP_S)
        ctx.log("info", message)
    return "Tool with logging executed successfully"


@mcp.function("conformance.log_unasked")
async def log_unasked(ctx: Context) -> str:
    ctx.log("info", "Only for a client that asked for log messages")
    return "A log message was offered."


@mcp.function("conformance.reconnection")
async def reconnection(ctx: Context) -> str:
    """Send the client away, and answer when it is gone."""
    ctx.reconnect(STEP_S)
    await asyncio.sleep(10 * STEP_S)
    return "Reconnection test completed successfully."


@mcp.function("conformance.tool_change")
async def tool_change(ctx: Context) -> str:
    ctx.changed("tools")
    return "The list of tools was said to have changed."


@mcp.function("conformance.prompt_change")
async def prompt_change(ctx: Context) -> str:
    ctx.changed("prompts")
    return "The list of prompts was said to have changed."


@mcp.function("conformance.mirrored")
async def mirrored(region: Annotated[str, Header("Region")] = "") -> str:
    return f"Region: {region}"


@mcp.function("conformance.watched")
async def watched() -> str:
    return "Watched resource content"


@mcp.complete("test_prompt_with_arguments", "arg1")
async def complete_arg1(value: str) -> list[str]:
    return [known for known in COMPLETIONS if known.startswith(value)]
