"""autogen-ext: its workbench."""

from __future__ import annotations

from contextlib import asynccontextmanager

from autogen_ext.tools.mcp import (
    McpWorkbench,
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
)
from driving import Session, headers, main, stdio


class Connection(Session):
    async def call(self, name, arguments):
        found = await self.client.call_tool(name, arguments)
        return [_image(each) for each in found.result]


def _image(part):
    """Return an image as it was sent; the workbench has made one of Pillow's of it."""
    content = getattr(part, "content", part)
    return content.to_base64() if hasattr(content, "to_base64") else part


def params(job):
    if job["transport"] == "stdio":
        return StdioServerParams(**stdio(job), read_timeout_seconds=job["patience_s"])
    kind = {"http": StreamableHttpServerParams, "sse": SseServerParams}
    return kind[job["transport"]](
        url=job["url"], headers=headers(job), timeout=job["patience_s"]
    )


@asynccontextmanager
async def connect(job):
    async with McpWorkbench(params(job)) as workbench:
        yield Connection(workbench)


main(connect)
