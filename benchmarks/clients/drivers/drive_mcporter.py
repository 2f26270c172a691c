"""mcporter: its command line, with a server in its configuration."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager

from driving import headers, main, stdio
from programs import ran


class Connection:
    def __init__(self, job):
        self.job = job

    async def _ran(self, *arguments):
        options = ("--config", f"{self.job['home']}/mcporter.json")
        return await ran(self.job, "mcporter", *options, *arguments)

    async def tools(self):
        written, beside = await self._ran("list", "drill", "--json")
        found = json.loads(written)
        if "tools" not in found:
            raise RuntimeError(found.get("error") or beside or written)
        return found["tools"]

    async def call(self, name, arguments):
        given = ("--args", json.dumps(arguments), "--output", "raw")
        return "\n".join(await self._ran("call", f"drill.{name}", *given))

    async def read(self, uri):
        return "\n".join(await self._ran("resource", "drill", uri))


def configuration(job):
    if job["transport"] == "stdio":
        return stdio(job)
    return {"baseUrl": job["url"], "headers": headers(job)}


@asynccontextmanager
async def connect(job):
    with open(os.path.join(job["home"], "mcporter.json"), "w") as file:
        json.dump({"mcpServers": {"drill": configuration(job)}, "imports": []}, file)
    yield Connection(job)


main(connect)
