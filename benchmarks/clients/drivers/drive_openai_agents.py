"""openai-agents: its MCP servers."""

from __future__ import annotations

from contextlib import asynccontextmanager

from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from driving import Session, headers, main, stdio


def made(job):
    longer = {"client_session_timeout_seconds": job["patience_s"]}
    if job["transport"] == "stdio":
        return MCPServerStdio(params=stdio(job), **longer)
    kind = {"http": MCPServerStreamableHttp, "sse": MCPServerSse}[job["transport"]]
    params = {"url": job["url"], "headers": headers(job), "timeout": job["patience_s"]}
    return kind(params=params, **longer)


@asynccontextmanager
async def connect(job):
    async with made(job) as server:
        yield Session(server)


main(connect)
