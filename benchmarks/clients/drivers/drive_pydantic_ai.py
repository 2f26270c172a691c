"""pydantic-ai: its toolset, called as an agent would."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import headers, main
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


class Connection:
    def __init__(self, toolset):
        self.toolset = toolset

    async def tools(self):
        return await self.toolset.list_tools()

    async def call(self, name, arguments):
        found = await self.toolset.direct_call_tool(name, arguments)
        # It gives what was structured in place of the content, and takes it out.
        is_number = isinstance(found, int)
        return {"structured_content": {"result": found}} if is_number else found

    async def read(self, uri):
        return await self.toolset.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.toolset.get_prompt(name, arguments)


def made(job):
    longer = {"init_timeout": job["patience_s"], "read_timeout": job["patience_s"]}
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        return MCPToolset(StdioTransport(command, arguments, env=job["env"]), **longer)
    return MCPToolset(job["url"], headers=headers(job), **longer)


@asynccontextmanager
async def connect(job):
    async with made(job) as toolset:
        yield Connection(toolset)


if __name__ == "__main__":
    main(connect)
