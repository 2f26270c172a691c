"""The official Python SDK 2.x: its client, as it is without options."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
from driving import Session, headers, main, stdio
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


class Connection(Session):
    async def tools(self):
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found


def transport(job):
    if job["transport"] == "stdio":
        return stdio_client(StdioServerParameters(**stdio(job)))
    if job["transport"] == "sse":
        return sse_client(job["url"], headers=headers(job))
    http = httpx2.AsyncClient(headers=headers(job), timeout=job["patience_s"])
    return streamable_http_client(job["url"], http_client=http)


@asynccontextmanager
async def connect(job):
    async with Client(transport(job)) as client:
        yield Connection(client)


main(connect)
