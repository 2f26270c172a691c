"""What all drivers in Python share; it needs nothing but Python.

A driver calls `main` with a function that makes an async context manager: it connects
by a job, a dict, and gives a connection.  That has `tools()`, the names of all tools
that the client lists; `call(name, arguments)`; and perhaps `read(uri)` and
`prompt(name, arguments)`.  What these return may be any object: it is looked through
for what the server sent.

The job has `transport` (http, sse or stdio), `url`, `token`, `command` and `env`;
`pause` where the driver says READY after its first call, and waits for a line before
it calls again; and `patience_s` for each step.  Standard output carries READY and
REPORT with JSON, and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys

ADD = {"a": 20, "b": 22}
MARKS = {
    "text": ("test_simple_text", "This is a simple text response for testing."),
    "image": ("test_image_content", "iVBORw0KGgo"),
    "audio": ("test_audio_content", "UklGRiYAAABXQVZF"),
    "embedded": ("test_embedded_resource", "This is an embedded resource content."),
    "link": ("test_resource_link", "test://static-text"),
}
"""By the kind of content, the tool that returns it, and what must be found of it."""
READ = ("test://static-text", "This is the content of the static text resource.")
PROMPT = ("test_prompt_with_arguments", {"arg1": "fish", "arg2": "fowl"})
PROMPTED = "arg1='fish', arg2='fowl'"
ORDERED = "This error was ordered by the caller."
STRUCTURED = re.compile(r"structured_?[cC]ontent\W{1,6}result\W{1,6}42\b")
REVISION = re.compile(r"20\d\d-\d\d-\d\d")
DEEPEST = 12
LONGEST = 2_000


def main(connect):
    """Do the job that is the first argument, and end the process."""
    # What clients print would stand between the lines.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(word, report):
        output.write(f"{word} {json.dumps(report)}\n")
        output.flush()

    asyncio.run(_drive(connect, json.loads(sys.argv[1]), say))


async def _drive(connect, job, say):
    report = {"seen": {}}
    try:
        async with connect(job) as connection:
            await _look(connection, job, report, say)
            # How a client ends is not looked at: some wait for ever.
            say("REPORT", report)
    except BaseException as error:
        say("REPORT", {**report, "error": words(error)})
    # Threads and tasks of a client may still wait for something.
    os._exit(0)


async def _look(connection, job, report, say):
    seen = report["seen"]
    within = job["patience_s"]
    if hasattr(connection, "tools"):
        report["tools"] = len(await asyncio.wait_for(connection.tools(), within))
    if not hasattr(connection, "call"):
        return
    found = await _outcome(connection.call("drill_add", ADD), within)
    report["added"] = found
    seen["structured"] = bool(STRUCTURED.search(found))
    if job["pause"]:
        say("READY", report)
        await asyncio.to_thread(sys.stdin.readline)
        report["after"] = await _outcome(connection.call("drill_add", ADD), within)
        return
    if job["whole"]:
        await _look_at_all(connection, report, within)


async def _look_at_all(connection, report, within):
    seen = report["seen"]
    whoami = await _outcome(connection.call("drill_whoami", {}), within)
    report["revision"] = (REVISION.findall(whoami) or [""])[0]
    for kind, (tool, mark) in MARKS.items():
        found = await _outcome(connection.call(tool, {}), within)
        seen[kind] = mark in found or found
    found = await _outcome(
        connection.call("drill_fail", {"kind": "tool_error"}), within
    )
    seen["errors"] = ORDERED in found or found
    if hasattr(connection, "read"):
        found = await _outcome(connection.read(READ[0]), within)
        seen["resources"] = READ[1] in found or found
    if hasattr(connection, "prompt"):
        found = await _outcome(connection.prompt(*PROMPT), within)
        seen["prompts"] = PROMPTED in found or found


async def _outcome(coroutine, within):
    """Return what came of it as text, which may be an error's."""
    try:
        found = await asyncio.wait_for(coroutine, within)
    except TimeoutError:
        return f"no answer after {within} s"
    except Exception as error:
        return words(error)
    return json.dumps(plain(found), ensure_ascii=False)[:LONGEST]


def plain(found, depth=0):
    """Return any object as JSON, as deep as a result may be."""
    if found is None or isinstance(found, str | int | float):
        return found
    if isinstance(found, bytes | bytearray):
        return base64.b64encode(found).decode()
    if isinstance(found, BaseException):
        return words(found)
    return str(found) if depth > DEEPEST else _parts(found, depth + 1)


def _parts(found, depth):
    if isinstance(found, list | tuple | set):
        return [plain(each, depth) for each in found]
    if hasattr(found, "model_dump"):
        found = found.model_dump()
    named = found if isinstance(found, dict) else vars_of(found)
    if not named:
        return str(found)
    return {str(name): plain(each, depth) for name, each in named.items()}


def vars_of(found):
    own = getattr(found, "__dict__", None) or {
        name: getattr(found, name, None) for name in getattr(found, "__slots__", ())
    }
    return {name: each for name, each in own.items() if not name.startswith("__")}


def words(error):
    """Return what a person reads of an error, out of its groups."""
    inner = getattr(error, "exceptions", None)
    if inner:
        return " / ".join(dict.fromkeys(map(words, inner)))
    return (str(error) or type(error).__name__)[:LONGEST]


class Session:
    """A connection by a client whose methods are called as most clients' are."""

    def __init__(self, client):
        self.client = client

    async def tools(self):
        return await self.client.list_tools()

    async def call(self, name, arguments):
        return await self.client.call_tool(name, arguments)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def prompt(self, name, arguments):
        return await self.client.get_prompt(name, arguments)


def stdio(job):
    """Return how a server on pipes is started, by the names that most clients use."""
    command, *arguments = job["command"]
    return {"command": command, "args": arguments, "env": job["env"]}


def headers(job):
    return {"Authorization": f"Bearer {job['token']}"} if job["token"] else {}
