"""Gemini CLI: the health check of `gemini mcp list`, in a home folder of its own."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager

from driving import headers, main, stdio
from programs import line_of, ran


def configuration(job):
    if job["transport"] == "stdio":
        return stdio(job)
    if job["transport"] == "sse":
        return {"url": job["url"], "type": "sse", "headers": headers(job)}
    return {"httpUrl": job["url"], "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    folder = os.path.join(job["home"], ".gemini")
    os.makedirs(folder)
    settings = {
        "mcpServers": {"drill": configuration(job)},
        # A folder that nobody trusts has no servers.
        "security": {"folderTrust": {"enabled": False}},
    }
    with open(os.path.join(folder, "settings.json"), "w") as file:
        json.dump(settings, file)
    said = line_of("drill", "\n".join(await ran(job, "gemini", "mcp", "list")))
    if "Connected" not in said:
        raise RuntimeError(said)
    yield object()


main(connect)
