"""Clients that take tasks, and what they do with them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

from mcp_app.protocol.tasks import EXTENSION
from tests.asgi_client import EVERYTHING, Client, JsonObject, Outcome
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import PATIENCE_S, Connect

TAKES_TASKS: Final[JsonObject] = {**EVERYTHING, "extensions": {EXTENSION: {}}}
ENDED: Final = ("completed", "failed", "cancelled")

Script: TypeAlias = Callable[[Any], Any]

_over: Final = threading.Event()


async def wait_long(ctx: Any) -> str:
    """Take until the test is over: one that has failed waits for nothing."""
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while not _over.is_set() and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.05)
    return "never"


async def be_quick(ctx: Any) -> str:
    return f"in {ctx.task_id}"


class TaskClient:
    """Somebody at the server `private`, in one of the two revisions with tasks."""

    def __init__(self, client: Client, play: Play) -> None:
        self.client = client
        self.stateless = client.revision.stateless
        self.play = play

    async def call(self, tool: str, script: Script, **more: Any) -> Outcome:
        """Call a tool, in 2025-11-25 as a task."""
        params = {**self.play.params(tool, script), **more}
        if not self.stateless:
            params.setdefault("task", {})
        return await self.client.request("tools/call", params)

    async def begin(self, tool: str, script: Script, **more: Any) -> str:
        """Start a task and return its id."""
        result = (await self.call(tool, script, **more)).result
        task = result if self.stateless else result["task"]
        assert task["status"] == "working", result
        identifier: str = task["taskId"]
        return identifier

    async def ask(self, method: str, task: str, **more: Any) -> Outcome:
        return await self.client.request(f"tasks/{method}", {"taskId": task, **more})

    async def get(self, task: str) -> JsonObject:
        return (await self.ask("get", task)).result

    async def until(self, task: str, *statuses: str) -> JsonObject:
        """Return the task once it has one of these statuses, by default an end."""
        async with asyncio.timeout(PATIENCE_S):
            while (found := await self.get(task))["status"] not in (statuses or ENDED):
                await asyncio.sleep(0.01)
        return found

    async def answer(self, task: str, **replies: JsonObject) -> None:
        await self.ask("update", task, inputResponses=replies)


TakeTasks: TypeAlias = Callable[..., Any]


@pytest.fixture
def take_tasks(scripted_tasks: None, connect: Connect) -> Iterator[TakeTasks]:
    """Return a client of a revision that takes tasks, by default ana's."""

    async def connected(version: str = STATELESS, user: str = "ana") -> TaskClient:
        """Without a user it is a stranger, at a server for all."""
        options = {"path": "/mcp/private", "headers": {"x-user": user}} if user else {}
        client = await connect(
            version,
            **options,
            capabilities=TAKES_TASKS if version == STATELESS else None,
        )
        return TaskClient(client, Play(connect))

    _over.clear()
    yield connected
    _over.set()


@pytest.fixture
async def ana(take_tasks: TakeTasks) -> TaskClient:
    found: TaskClient = await take_tasks()
    return found


@pytest.fixture(params=[STATELESS, STATEFUL])
async def each(request: pytest.FixtureRequest, take_tasks: TakeTasks) -> TaskClient:
    """Ana's client, in each revision with tasks."""
    found: TaskClient = await take_tasks(request.param)
    return found
