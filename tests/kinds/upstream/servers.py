"""MCP servers of others: `python -m tests.kinds.upstream.servers sdk=7001 …`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import uvicorn
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ContentBlock
from pydantic import Field, TypeAdapter

from tests.drill.contents import AUDIO, MIXED, text

NOTED = {**text("one"), "annotations": {"audience": ["user"], "priority": 0.5}}
Region = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


def add(a: int) -> int:
    """Add one to a number."""
    return a + 1


def blocks() -> list[ContentBlock]:
    """Give content of each kind."""
    return TypeAdapter(list[ContentBlock]).validate_python([NOTED, AUDIO, *MIXED])


def route(region: Region) -> str:
    return region


async def steps(ctx: Any) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step)
    return "done"


def make_app(sort: str) -> Any:
    is_fast = sort == "fastmcp"
    server: Any = FastMCP("A") if is_fast else MCPServer("A")
    steps.__annotations__["ctx"] = FastContext if is_fast else Context
    for each in (add, blocks, route, steps):
        server.tool()(each)
    make = server.http_app if is_fast else server.streamable_http_app
    return make(json_response=sort == "sdk_json")


async def serve(pairs: list[str]) -> None:
    each = (pair.split("=") for pair in pairs)
    configs = [uvicorn.Config(make_app(sort), port=int(port)) for sort, port in each]
    await asyncio.gather(*(uvicorn.Server(config).serve() for config in configs))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
