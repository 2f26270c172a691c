"""Reads the JSON of a body or a line, on the loop or in a thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process


async def read_json(process: Process, body: bytes) -> object:
    """Return the value of a body; a thread parses it if it is large.

    Raises `ParseError`.
    """
    if len(body) <= process.limits.parse_in_thread:
        return jsonrpc.read(body, process.read_limits)
    return await asyncio.to_thread(jsonrpc.read, body, process.read_limits)
