"""Claude Code: the health check of `claude mcp list`, in a home folder of its own."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager

from driving import headers, main
from programs import line_of, ran


def configuration(job):
    if job["transport"] == "stdio":
        command, *arguments = job["command"]
        params = {"command": command, "args": arguments, "env": job["env"]}
        return {"type": "stdio", **params}
    return {"type": job["transport"], "url": job["url"], "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    with open(os.path.join(job["home"], ".claude.json"), "w") as file:
        json.dump({"mcpServers": {"drill": configuration(job)}}, file)
    written, beside = await ran(job, "claude", "mcp", "list")
    said = line_of("drill", written or beside)
    if "Connected" not in said:
        more, _ = await ran(job, "claude", "mcp", "get", "drill")
        raise RuntimeError(f"{said} {' '.join(more.split())}")
    yield object()


if __name__ == "__main__":
    main(connect)
