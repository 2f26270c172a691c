"""The peer: the official Python SDK, serving the benchmark's tool in both eras.

Answers are JSON, which is the fastest that it offers.  As a program it serves on stdio.
"""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("benchmarks", log_level="ERROR")


@server.tool()
async def drill_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


application = server.streamable_http_app(json_response=True)

if __name__ == "__main__":
    server.run("stdio")
