"""FastMCP: its client."""

from __future__ import annotations

from contextlib import asynccontextmanager

import fastmcp
from driving import Session, headers, main, stdio
from fastmcp.client.transports import (
    SSETransport,
    StdioTransport,
    StreamableHttpTransport,
)


def transport(job):
    if job["transport"] == "stdio":
        return StdioTransport(**stdio(job))
    kind = {"http": StreamableHttpTransport, "sse": SSETransport}[job["transport"]]
    return kind(job["url"], headers=headers(job))


@asynccontextmanager
async def connect(job):
    async with fastmcp.Client(transport(job)) as client:
        yield Session(client)


main(connect)
