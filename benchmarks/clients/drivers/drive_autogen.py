"""autogen-ext: its workbench."""

from __future__ import annotations

from contextlib import asynccontextmanager

from autogen_ext.tools.mcp import (
    McpWorkbench,
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
)
from driving import headers, main


class Connection:
    def __init__(self, workbench):
        self.workbench = workbench

    async def tools(self):
        return await self.workbench.list_tools()

    async def call(self, name, arguments):
        found = await self.workbench.call_tool(name, arguments)
        return [_image(each) for each in found.result]

    async def read(self, uri):
        return await self.workbench.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.workbench.get_prompt(name, arguments)


def _image(part):
    """Return an image as it was sent; the workbench has made one of Pillow's of it."""
    content = getattr(part, "content", part)
    return content.to_base64() if hasattr(content, "to_base64") else part


def params(job):
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        return StdioServerParams(
            command=command,
            args=arguments,
            env=job["env"],
            read_timeout_seconds=job["patience_s"],
        )
    kind = {"http": StreamableHttpServerParams, "sse": SseServerParams}
    return kind[job["transport"]](
        url=job["url"], headers=headers(job), timeout=job["patience_s"]
    )


@asynccontextmanager
async def connect(job):
    async with McpWorkbench(params(job)) as workbench:
        yield Connection(workbench)


if __name__ == "__main__":
    main(connect)
