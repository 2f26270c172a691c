"""The same tools, resources and prompts, declared here and with the official SDK.

Functions that need nothing of either side are the same objects; what needs a context or
a block of content is written twice.  Arguments, names and texts are the same.
"""

from __future__ import annotations

from typing import Any, Final, TypedDict

from mcp.server.mcpserver import Context as TheirContext
from mcp.server.mcpserver import Image as TheirImage
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as TheirToolError
from mcp.types import Completion as TheirCompletion

from mcp_app import Completion, Context, Image, Text, ToolError
from mcp_app.catalog.registry import Registry

TAG: Final = "twin"
SLUG: Final = "twin"
PNG: Final = b"\x89PNG\r\n\x1a\n"
BYTES: Final = b"\x00\x01\x02"
TOPICS: Final = ("tea", "toast", "treacle")


class Failed(ToolError, TheirToolError):
    """What a tool raises whose model is to read why, on either side."""


class Weather(TypedDict):
    """A result with structure."""

    degrees: float
    words: str


async def add(a: int, b: int) -> str:
    """Adds two integers."""
    return str(a + b)


async def breaks() -> str:
    """Fails in a way that nobody foresaw."""
    raise ValueError("the secret of the inside")


async def fails(why: str) -> str:
    """Fails, and says why."""
    raise Failed(why)


async def greet(name: str, times: int = 1) -> str:
    """Greets somebody."""
    return " ".join([f"Hello, {name}!"] * times)


async def weather(place: str) -> Weather:
    """Tells the weather."""
    return {"degrees": 7.5, "words": f"mild in {place}"}


async def note() -> str:
    """A text."""
    return "a note"


async def data() -> bytes:
    """Some bytes."""
    return BYTES


async def note_by(name: str) -> str:
    """A text of somebody."""
    return f"a note by {name}"


async def lost() -> str:
    """Cannot be read."""
    raise ValueError("the secret of the inside")


async def ask(topic: str, tone: str = "plain") -> str:
    """Asks about a topic."""
    return f"Tell me of {topic}, {tone}."


async def hello() -> str:
    """Says hello."""
    return "Hello."


PLAIN: Final = (add, breaks, fails, greet)
PROMPTS: Final = (ask, hello)


def ours() -> Registry:
    """Return what this server serves under the address `SLUG`."""
    registry = Registry()
    tags = [TAG]
    for each in (*PLAIN, weather):
        registry.tool(tags=tags)(each)

    @registry.tool(tags=tags)
    async def counts(ctx: Context, steps: int) -> str:
        """Counts, and says how far it is."""
        for step in range(1, steps + 1):
            ctx.progress(step, steps)
        return "counted"

    @registry.tool(tags=tags)
    async def paints() -> list[Text | Image]:
        """Paints a picture."""
        return [Text("a picture"), Image(PNG, "image/png")]

    registry.resource("note://one", mime_type="text/plain", tags=tags)(note)
    registry.resource("note://data", mime_type="image/png", tags=tags)(data)
    registry.resource("note://lost", mime_type="text/plain", tags=tags)(lost)
    registry.resource("note://by/{name}", mime_type="text/plain", tags=tags)(note_by)
    for prompt in PROMPTS:
        registry.prompt(tags=tags)(prompt)

    @registry.complete("ask", "topic")
    async def complete(value: str) -> Completion:
        return Completion(_topics(value), total=len(_topics(value)), has_more=False)

    return registry


def theirs() -> MCPServer[Any]:
    """Return the same as a server of the official SDK."""
    server: MCPServer[Any] = MCPServer(SLUG, version="1", log_level="CRITICAL")

    async def counts(ctx: TheirContext[Any, Any], steps: int) -> str:
        """Counts, and says how far it is."""
        for step in range(1, steps + 1):
            await ctx.report_progress(step, steps)
        return "counted"

    async def paints() -> list[Any]:
        """Paints a picture."""
        return ["a picture", TheirImage(data=PNG, format="png")]

    # In the order in which this server lists them: by name.
    for each in (add, breaks, counts, fails, greet):
        server.add_tool(each)
    server.add_tool(paints, structured_output=False)
    server.add_tool(weather)
    server.resource("note://data", mime_type="image/png")(data)
    server.resource("note://lost", mime_type="text/plain")(lost)
    server.resource("note://one", mime_type="text/plain")(note)
    server.resource("note://by/{name}", mime_type="text/plain")(note_by)
    for prompt in PROMPTS:
        server.prompt()(prompt)

    async def complete(ref: Any, argument: Any, context: Any) -> TheirCompletion | None:
        if getattr(ref, "name", "") != "ask" or argument.name != "topic":
            return None
        found = _topics(argument.value)
        return TheirCompletion(values=found, total=len(found), has_more=False)

    # The SDK's decorator has no types.
    decorate: Any = server.completion
    decorate()(complete)
    return server


def _topics(value: str) -> list[str]:
    return [topic for topic in TOPICS if topic.startswith(value)]
