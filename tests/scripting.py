"""A pytest plugin: tools that run what a test tells them to, wherever they run.

`play("sync", script)` calls the tool `sync`, which calls `script(ctx)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from mcp_app import Context, SyncContext
from mcp_app.catalog.registry import Registry

if TYPE_CHECKING:
    from tests.asgi_client import Answer, Client, Outcome, Visit
    from tests.serving import Connect

TAG: Final = "private"
STATEFUL: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"

_scripts: dict[str, Callable[[Any], Any]] = {}


async def _on_loop(ctx: Context, script: str) -> Any:
    return await _scripts[script](ctx)


async def _typed(ctx: Context, script: str) -> list[str]:
    texts: list[str] = await _scripts[script](ctx)
    return texts


def _in_thread(ctx: SyncContext, script: str) -> Any:
    return _scripts[script](ctx)


def scripted_registry() -> Registry:
    """Return a registry with a tool for each way in which code runs, and a prompt."""
    registry = Registry()
    registry.tool("async", tags=[TAG])(_on_loop)
    registry.tool("database", database=True, tags=[TAG])(_on_loop)
    registry.tool("atomic", atomic=True, tags=[TAG])(_on_loop)
    registry.tool("sync", tags=[TAG])(_in_thread)
    registry.tool("atomic_sync", atomic=True, tags=[TAG])(_in_thread)
    registry.tool("not_atomic", atomic=False, tags=[TAG])(_in_thread)
    registry.tool("short", timeout=0.3, tags=[TAG])(_on_loop)
    registry.tool("short_database", timeout=0.3, database=True, tags=[TAG])(_on_loop)
    registry.tool("short_sync", timeout=0.3, tags=[TAG])(_in_thread)
    registry.tool("short_atomic", timeout=0.3, atomic=True, tags=[TAG])(_in_thread)
    # These must come far in their time, whatever else the machine has to do.
    registry.tool("second", timeout=1.0, tags=[TAG])(_on_loop)
    registry.tool("second_sync", timeout=1.0, tags=[TAG])(_in_thread)
    registry.tool("second_atomic", timeout=1.0, atomic=True, tags=[TAG])(_in_thread)
    registry.prompt("prompt", tags=[TAG])(_on_loop)
    return registry


def task_registry() -> Registry:
    """Return the same with tools that run as tasks."""
    registry = scripted_registry()
    registry.tool("task", task="optional", tags=[TAG])(_on_loop)
    registry.tool("task_typed", task="optional", tags=[TAG])(_typed)
    registry.tool("task_sync", task="optional", rerun=True, tags=[TAG])(_in_thread)
    registry.tool("task_required", task="required", tags=[TAG])(_on_loop)
    registry.tool("task_later", task="optional", ask_first=True, tags=[TAG])(_on_loop)
    registry.tool("task_short", task="optional", timeout=0.3, tags=[TAG])(_on_loop)
    return registry


class Play:
    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._client: Client | None = None

    async def __call__(
        self,
        tool: str,
        script: Callable[[Any], Any],
        *,
        answer: Answer | None = None,
        client: Client | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Outcome:
        if client is None:
            self._client = client = self._client or await self._connect(STATELESS)
        params = self.params(tool, script)
        if meta is not None:
            params["_meta"] = meta
        return await client.talk("tools/call", params, answer or _nobody_asks)

    def begin(self, tool: str, script: Callable[[Any], Any], client: Client) -> Visit:
        """Begin such a call, to read its answer as it comes."""
        return client.begin("tools/call", self.params(tool, script))

    def params(self, tool: str, script: Callable[[Any], Any]) -> dict[str, Any]:
        name = str(len(_scripts))
        _scripts[name] = script
        return {"name": tool, "arguments": {"script": name}}


def _nobody_asks(method: str, params: dict[str, Any]) -> dict[str, Any]:
    raise AssertionError(f"The server asked {method} {params}.")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tests.behaviours.registry", scripted_registry())
    yield
    _scripts.clear()
    # The connections of async user code on the loop.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture
def scripted_tasks(scripted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.behaviours.registry", task_registry())


@pytest.fixture
def play(scripted: None, connect: Connect) -> Play:
    return Play(connect)
