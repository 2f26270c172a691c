"""pydantic-ai: its toolset, called as an agent would."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import Session, headers, main, stdio
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


class Connection(Session):
    async def call(self, name, arguments):
        found = await self.client.direct_call_tool(name, arguments)
        # It gives what was structured in place of the content, and takes it out.
        is_number = isinstance(found, int)
        return {"structured_content": {"result": found}} if is_number else found


def made(job):
    longer = {"init_timeout": job["patience_s"], "read_timeout": job["patience_s"]}
    if job["transport"] == "stdio":
        return MCPToolset(StdioTransport(**stdio(job)), **longer)
    return MCPToolset(job["url"], headers=headers(job), **longer)


@asynccontextmanager
async def connect(job):
    async with made(job) as toolset:
        yield Connection(toolset)


main(connect)
