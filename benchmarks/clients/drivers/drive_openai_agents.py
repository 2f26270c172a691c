"""openai-agents: its MCP servers."""

from __future__ import annotations

from contextlib import asynccontextmanager

from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from driving import headers, main


class Connection:
    def __init__(self, server):
        self.server = server

    async def tools(self):
        return await self.server.list_tools()

    async def call(self, name, arguments):
        return await self.server.call_tool(name, arguments)

    async def read(self, uri):
        return await self.server.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.server.get_prompt(name, arguments)


def made(job):
    longer = {"client_session_timeout_seconds": job["patience_s"]}
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        params = {"command": command, "args": arguments, "env": job["env"]}
        return MCPServerStdio(params=params, **longer)
    kind = {"http": MCPServerStreamableHttp, "sse": MCPServerSse}[job["transport"]]
    params = {"url": job["url"], "headers": headers(job), "timeout": job["patience_s"]}
    return kind(params=params, **longer)


@asynccontextmanager
async def connect(job):
    async with made(job) as server:
        yield Connection(server)


if __name__ == "__main__":
    main(connect)
