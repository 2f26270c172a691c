"""google-adk: the tools of its toolset, called as its runner does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace

from driving import headers, main, stdio
from google.adk.tools.mcp_tool import (
    McpToolset,
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from mcp import StdioServerParameters

NAMES = {"test://static-text": "static-text"}
"""It reads resources by their names."""


class Connection:
    def __init__(self, toolset):
        self.toolset = toolset
        self.by_name = {}

    async def tools(self):
        found = await self.toolset.get_tools()
        self.by_name = {tool.name: tool for tool in found}
        return found

    async def call(self, name, arguments):
        # There is no agent whose turn it would be.
        return await self.by_name[name].run_async(args=arguments, tool_context=NOBODY)

    async def read(self, uri):
        return await self.toolset.read_resource(NAMES[uri])


class Nobody(SimpleNamespace):
    def __getattr__(self, name):
        return None


NOBODY = Nobody(actions=SimpleNamespace(), state={})


def params(job):
    longer = {"timeout": job["patience_s"]}
    if job["transport"] == "stdio":
        own = StdioServerParameters(**stdio(job))
        return StdioConnectionParams(server_params=own, **longer)
    kind = {"http": StreamableHTTPConnectionParams, "sse": SseConnectionParams}
    return kind[job["transport"]](url=job["url"], headers=headers(job), **longer)


@asynccontextmanager
async def connect(job):
    toolset = McpToolset(connection_params=params(job))
    try:
        yield Connection(toolset)
    finally:
        await toolset.close()


main(connect)
