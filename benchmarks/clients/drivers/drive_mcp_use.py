"""mcp-use: a session of its client.  For HTTP+SSE it is given that address."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import headers, main
from mcp_use.client import MCPClient


class Connection:
    def __init__(self, session):
        self.session = session

    async def tools(self):
        return await self.session.list_tools()

    async def call(self, name, arguments):
        return await self.session.call_tool(name, arguments)

    async def read(self, uri):
        return await self.session.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.session.get_prompt(name, arguments)


def configuration(job):
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        return {"command": command, "args": arguments, "env": job["env"]}
    longer = {"timeout": job["patience_s"]}
    return {"url": job["url"], "headers": headers(job), **longer}


@asynccontextmanager
async def connect(job):
    client = MCPClient({"mcpServers": {"drill": configuration(job)}})
    try:
        yield Connection(await client.create_session("drill"))
    finally:
        await client.close_all_sessions()


if __name__ == "__main__":
    main(connect)
