"""The official Python SDK 2.x: its client, as it is without options."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
from driving import headers, main
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


class Connection:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found

    async def call(self, name, arguments):
        return await self.client.call_tool(name, arguments)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)


def transport(job):
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        return stdio_client(
            StdioServerParameters(command=command, args=arguments, env=job["env"])
        )
    if job["transport"] == "sse":
        return sse_client(job["url"], headers=headers(job))
    http = httpx2.AsyncClient(headers=headers(job), timeout=job["patience_s"])
    return streamable_http_client(job["url"], http_client=http)


@asynccontextmanager
async def connect(job):
    async with Client(transport(job)) as client:
        yield Connection(client)


if __name__ == "__main__":
    main(connect)
