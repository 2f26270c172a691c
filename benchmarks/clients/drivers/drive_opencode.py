"""opencode: the health check of `opencode mcp list`, in a home folder of its own."""

from __future__ import annotations

import json
import os
import re
from contextlib import asynccontextmanager

from driving import headers, main, stdio
from programs import ran


def configuration(job):
    if job["transport"] == "stdio":
        own = stdio(job)
        command = [own["command"], *own["args"]]
        return {"type": "local", "command": command, "environment": own["env"]}
    return {"type": "remote", "url": job["url"], "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    with open(os.path.join(job["home"], "opencode.json"), "w") as file:
        own = {**configuration(job), "timeout": 1_000 * job["patience_s"]}
        json.dump({"mcp": {"drill": own}}, file)
    written = "\n".join(await ran(job, "opencode", "mcp", "list"))
    said = " ".join(re.sub("[┌│●└]", " ", written).split())
    if "connected" not in said or "failed" in said:
        raise RuntimeError(said)
    yield object()


main(connect)
