"""langchain-mcp-adapters: a session, and its tools as langchain calls them."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import headers, main, stdio
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools


class Connection:
    def __init__(self, session):
        self.session = session
        self.by_name = {}

    async def tools(self):
        found = await load_mcp_tools(self.session)
        self.by_name = {tool.name: tool for tool in found}
        return found

    async def call(self, name, arguments):
        call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        return await self.by_name[name].ainvoke(call)

    async def read(self, uri):
        [blob] = await load_mcp_resources(self.session, uris=uri)
        return blob.as_string()

    async def prompt(self, name, arguments):
        return await load_mcp_prompt(self.session, name, arguments=arguments)


def configuration(job):
    if job["transport"] == "stdio":
        return {"transport": "stdio", **stdio(job)}
    transport = {"http": "streamable_http", "sse": "sse"}[job["transport"]]
    return {"transport": transport, "url": job["url"], "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    client = MultiServerMCPClient({"drill": configuration(job)})
    async with client.session("drill") as session:
        yield Connection(session)


main(connect)
