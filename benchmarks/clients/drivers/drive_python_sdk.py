"""The official Python SDK, from 1.0 to 1.x."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import Session, headers, main, stdio
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

try:
    from mcp.client.streamable_http import streamablehttp_client
except ImportError:
    # Old ones know HTTP+SSE alone.
    streamablehttp_client = None


class Connection(Session):
    async def tools(self):
        found, cursor = [], None
        while True:
            # Old ones have no parameter for a cursor.
            page = await self.client.list_tools(*([cursor] if cursor else []))
            found += page.tools
            cursor = getattr(page, "nextCursor", None)
            if not cursor or not pages(self.client):
                return found

    async def read(self, uri):
        return await self.client.read_resource(AnyUrl(uri))


def pages(session):
    return "cursor" in session.list_tools.__func__.__code__.co_varnames


def transport(job):
    if job["transport"] == "stdio":
        return stdio_client(StdioServerParameters(**stdio(job)))
    if job["transport"] == "sse":
        return sse_client(job["url"], headers=headers(job))
    return streamablehttp_client(job["url"], headers=headers(job))


@asynccontextmanager
async def connect(job):
    async with (
        transport(job) as (reading, writing, *_),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield Connection(session)


if __name__ == "__main__":
    main(connect)
