"""Questions of the stateful era that wait for an answer, in this process's memory."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_app.interface.errors import ClientRefused
from mcp_app.protocol.jsonrpc import JsonObject
from mcp_app.streams.sessions import ANSWERED_KEPT, OpenSession


class OpenQuestions:
    """Futures by session and request id; used on the loop only."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[JsonObject]] = {}

    def expect(self, session: OpenSession, identifier: str) -> asyncio.Future[Any]:
        """Return what the answer will resolve."""
        future: asyncio.Future[JsonObject]
        future = asyncio.get_running_loop().create_future()
        self._waiting[session.digest, identifier] = future
        return future

    def forget(self, session: OpenSession, identifier: str) -> None:
        """Wait no longer; a late answer is known for a while, and dropped."""
        self._waiting.pop((session.digest, identifier), None)
        session.answered[identifier] = None
        while len(session.answered) > ANSWERED_KEPT:
            session.answered.popitem(last=False)

    def answer(
        self,
        session: OpenSession,
        identifier: str | int,
        result: JsonObject | None,
        error: JsonObject | None,
    ) -> bool:
        """Resolve a question; False where nobody ever asked it."""
        name = str(identifier)
        future = self._waiting.get((session.digest, name))
        if future is None:
            return name in session.answered
        if not future.done():
            if result is not None:
                future.set_result(result)
            else:
                future.set_exception(ClientRefused(_reason(error or {})))
        return True


def _reason(error: JsonObject) -> str:
    return f"The client answered with error {error.get('code')}: {error.get('message')}"
