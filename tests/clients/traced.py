"""A program that traces itself, and calls a tool with the official SDK.

    python -m tests.clients.traced http://127.0.0.1:8000/mcp

Without an address it starts `mcp_stdio`, with its own environment.  Its spans go to
its output.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings

from mcp import Client, StdioServerParameters

from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.test_python_sdk import MODES
from tests.drill.piped import COMMAND
from tests.drill.spans import write_spans


async def call_tools(server: str | StdioServerParameters) -> None:
    for era in (STATEFUL, STATELESS):
        async with Client(server, mode=MODES[era]) as client:
            await client.list_tools()
            for _ in range(3):
                await client.call_tool("drill_add", {"a": 1, "b": 2})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_spans(sys.stdout)
    command, *arguments = COMMAND
    piped = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    asyncio.run(call_tools(sys.argv[1] if sys.argv[1:] else piped))
