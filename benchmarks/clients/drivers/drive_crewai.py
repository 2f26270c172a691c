"""crewai-tools: the tools of its adapter."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from crewai_tools import MCPServerAdapter
from driving import headers, main, stdio
from mcp import StdioServerParameters


class Connection:
    def __init__(self, tools):
        self.by_name = {tool.name: tool for tool in tools}

    async def tools(self):
        return list(self.by_name)

    async def call(self, name, arguments):
        return await asyncio.to_thread(self.by_name[name].run, **arguments)


def params(job):
    if job["transport"] == "stdio":
        return StdioServerParameters(**stdio(job))
    transport = {"http": "streamable-http", "sse": "sse"}[job["transport"]]
    return {"url": job["url"], "transport": transport, "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    adapter = await asyncio.to_thread(MCPServerAdapter, params(job))
    try:
        yield Connection(adapter.tools)
    finally:
        await asyncio.to_thread(adapter.stop)


main(connect)
