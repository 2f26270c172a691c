"""smolagents: the tools of its client, which mcpadapt makes."""

from __future__ import annotations

import asyncio
import base64
import io
from contextlib import asynccontextmanager

from driving import headers, main, stdio
from mcp import StdioServerParameters
from smolagents import MCPClient


class Connection:
    def __init__(self, tools):
        self.by_name = {tool.name: tool for tool in tools}

    async def tools(self):
        return list(self.by_name)

    async def call(self, name, arguments):
        found = await asyncio.to_thread(self.by_name[name], **arguments)
        if hasattr(found, "save"):
            return _encoded(found)
        # It gives what was structured in place of the content.
        return {"structured_content": found} if isinstance(found, dict) else found


def _encoded(image):
    """Return an image of Pillow's in base64."""
    png = io.BytesIO()
    image.save(png, "PNG")
    return base64.b64encode(png.getvalue()).decode()


def params(job):
    if job["transport"] == "stdio":
        return StdioServerParameters(**stdio(job))
    transport = {"http": "streamable-http", "sse": "sse"}[job["transport"]]
    return {"url": job["url"], "transport": transport, "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    client = await asyncio.to_thread(MCPClient, params(job), structured_output=True)
    try:
        yield Connection(client.get_tools())
    finally:
        await asyncio.to_thread(client.disconnect)


main(connect)
