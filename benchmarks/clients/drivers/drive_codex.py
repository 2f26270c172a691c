"""Codex: its app server, which calls tools for a program, without a model."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from itertools import count

from driving import headers, main, stdio
from programs import ran


class Connection:
    def __init__(self, child):
        self.child = child
        self.numbers = count(1)
        self.trouble = ""
        self.thread = ""

    def send(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    async def request(self, method, **params):
        number = next(self.numbers)
        self.send({"id": number, "method": method, "params": params})
        while line := await self.child.stdout.readline():
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
            if message.get("method") == "mcpServer/startupStatus/updated":
                self.trouble = message["params"]["error"] or self.trouble
        raise RuntimeError("the app server has ended")

    async def tools(self):
        found = await self.request(
            "mcpServerStatus/list", threadId=self.thread, serverName="drill"
        )
        [server] = found["data"]
        if not server["tools"]:
            raise RuntimeError(server["toolsError"] or self.trouble or str(server))
        return list(server["tools"])

    async def call(self, name, arguments):
        return await self.request(
            "mcpServer/tool/call",
            threadId=self.thread,
            server="drill",
            tool=name,
            arguments=arguments,
        )

    async def read(self, uri):
        return await self.request(
            "mcpServer/resource/read", threadId=self.thread, server="drill", uri=uri
        )


def configuration(job):
    """Return the table of the server, as TOML: JSON but for the inner tables."""
    own = stdio(job) if job["transport"] == "stdio" else {"url": job["url"]}
    own["startup_timeout_sec"] = job["patience_s"]
    inner = {"env": own.pop("env", {}), "http_headers": headers(job)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    for name, table in inner.items():
        if table:
            lines.append(f"[mcp_servers.drill.{name}]")
            lines += [f"{each} = {json.dumps(text)}" for each, text in table.items()]
    return "\n".join(["[mcp_servers.drill]", *lines, ""])


@asynccontextmanager
async def connect(job):
    folder = os.path.join(job["home"], ".codex")
    os.makedirs(folder)
    with open(os.path.join(folder, "config.toml"), "w") as file:
        file.write(configuration(job))
    if job["signs_in"]:
        await ran(job, "codex", "mcp", "login", "drill")
    child = await asyncio.create_subprocess_exec(
        *(f"{job['modules']}/.bin/codex", "app-server"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
    )
    connection = Connection(child)
    client = {"name": "driver", "title": None, "version": "1"}
    await connection.request("initialize", clientInfo=client, capabilities=None)
    connection.send({"method": "initialized"})
    started = await connection.request("thread/start", ephemeral=True)
    connection.thread = started["thread"]["id"]
    yield connection


main(connect)
