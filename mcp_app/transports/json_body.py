"""Reads the JSON of a body or a line, on the loop or in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.pools.large_work import large_work
from mcp_app.pools.turns import Owner
from mcp_app.protocol import jsonrpc

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process


async def read_json(
    process: Process, body: bytes, owner: Owner, *, large: bool
) -> object:
    """Return the value of an owner's body, which a thread reads if it `is_large`.

    Raises `ParseError`.
    """
    if large:
        return await large_work.run(owner, jsonrpc.read, body, process.read_limits)
    return jsonrpc.read(body, process.read_limits)


def is_large(process: Process, body: bytes) -> bool:
    """Whether a body has so many bytes or values that the loop must not read it.

    Strings count, too: arguments may be read from them.
    """
    size, limits = len(body), process.limits
    if size <= process.narrow:
        # A value has at least a byte, and a comma or a bracket.
        return False
    return size > limits.parse_in_thread or (
        sum(map(body.count, (b",", b"[", b"{"))) > limits.nodes_in_thread
    )
