"""Claude Code: the health check of `claude mcp list`, in a home folder of its own."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager

from driving import headers, main, stdio
from programs import line_of, ran


async def add(job):
    """Add the server: over HTTP by the line that the page *Connect* gives."""
    if job["transport"] == "http":
        line = ["--transport", "http", "drill", job["url"]]
        for name, value in headers(job).items():
            line += ["--header", f"{name}: {value}"]
        await ran(job, "claude", "mcp", "add", *line)
        return
    if job["transport"] == "stdio":
        own = stdio(job)
    else:
        own = {"url": job["url"], "headers": headers(job)}
    configuration = {"type": job["transport"], **own}
    with open(os.path.join(job["home"], ".claude.json"), "w") as file:
        json.dump({"mcpServers": {"drill": configuration}}, file)


@asynccontextmanager
async def connect(job):
    await add(job)
    written, beside = await ran(job, "claude", "mcp", "list")
    said = line_of("drill", written or beside)
    if "Connected" not in said:
        more, _ = await ran(job, "claude", "mcp", "get", "drill")
        raise RuntimeError(f"{said} {' '.join(more.split())}")
    yield object()


main(connect)
