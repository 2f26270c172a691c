"""llama-index-tools-mcp: the tools of a `McpToolSpec`."""

from __future__ import annotations

from contextlib import asynccontextmanager

from driving import headers, main
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class Connection:
    def __init__(self, client):
        self.client = client
        self.by_name = {}

    async def tools(self):
        found = await McpToolSpec(self.client).to_tool_list_async()
        self.by_name = {tool.metadata.name: tool for tool in found}
        return found

    async def call(self, name, arguments):
        return await self.by_name[name].acall(**arguments)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)


@asynccontextmanager
async def connect(job):
    longer = {"timeout": job["patience_s"]}
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        client = BasicMCPClient(command, args=arguments, env=job["env"], **longer)
    else:
        client = BasicMCPClient(job["url"], headers=headers(job), **longer)
    yield Connection(client)


main(connect)
