"""FastMCP: its client."""

from __future__ import annotations

from contextlib import asynccontextmanager

import fastmcp
from driving import headers, main
from fastmcp.client.transports import (
    SSETransport,
    StdioTransport,
    StreamableHttpTransport,
)


class Connection:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return await self.client.list_tools()

    async def call(self, name, arguments):
        return await self.client.call_tool(name, arguments)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)


def transport(job):
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        return StdioTransport(command, arguments, env=job["env"])
    kind = {"http": StreamableHttpTransport, "sse": SSETransport}[job["transport"]]
    return kind(job["url"], headers=headers(job))


@asynccontextmanager
async def connect(job):
    async with fastmcp.Client(transport(job)) as client:
        yield Connection(client)


if __name__ == "__main__":
    main(connect)
