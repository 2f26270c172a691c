"""mcp-use: a session of its client.  For HTTP+SSE it is given that address."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import Session, headers, main, stdio
from mcp_use.client import MCPClient


def configuration(job):
    if job["transport"] == "stdio":
        return stdio(job)
    longer = {"timeout": job["patience_s"]}
    return {"url": job["url"], "headers": headers(job), **longer}


@asynccontextmanager
async def connect(job):
    client = MCPClient({"mcpServers": {"drill": configuration(job)}})
    try:
        yield Session(await client.create_session("drill"))
    finally:
        await client.close_all_sessions()


main(connect)
