"""A client of the official SDK that hears of what staff change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any, Final

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

TOLD_S: Final = 60.0


class Listening(threading.Thread):
    def __init__(self, url: str, token: str = "") -> None:
        super().__init__(daemon=True)
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._events: Queue[str] = Queue()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._client: Client | None = None
        self._ready = threading.Event()

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _listen(self) -> None:
        async with (
            create_mcp_http_client(headers=self._headers) as http,
            Client(
                streamable_http_client(self._url, http_client=http), mode="auto"
            ) as client,
            client.listen(
                tools_list_changed=True, prompts_list_changed=True
            ) as subscription,
        ):
            self._client = client
            self._ready.set()
            stopped = asyncio.create_task(self._ended.wait())
            heard = asyncio.create_task(self._hear(subscription))
            await asyncio.wait({stopped, heard}, return_when="FIRST_COMPLETED")
            heard.cancel()

    async def _hear(self, subscription: Any) -> None:
        async for event in subscription:
            self._events.put(type(event).__name__)

    def __enter__(self) -> Listening:
        self.start()
        assert self._ready.wait(TOLD_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self.join(TOLD_S)

    def sees(self, look: Callable[[], object], expected: object) -> None:
        """Wait until it is told of a change, and then sees what is expected.

        What it is told first may be the end of what was before.
        """
        told = self._events.get(timeout=TOLD_S)
        while look() != expected:
            told = self._events.get(timeout=TOLD_S)
        assert told.endswith("ListChanged")

    def ask(self, method: str, *arguments: Any) -> Any:
        asked = getattr(self._client, method)(*arguments)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(TOLD_S)

    def prompts(self) -> set[str]:
        return {each.name for each in self.ask("list_prompts").prompts}

    def description(self, name: str) -> str | None:
        tools = {each.name: each for each in self.ask("list_tools").tools}
        return tools[name].description if name in tools else None

    def schema(self, name: str) -> dict[str, Any]:
        tools = {each.name: each for each in self.ask("list_tools").tools}
        schema: dict[str, Any] = tools[name].input_schema
        return schema

    def prompt(self, name: str, **arguments: str) -> list[str]:
        messages = self.ask("get_prompt", name, arguments).messages
        return [f"{each.role}: {each.content.text}" for each in messages]
