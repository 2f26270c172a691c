"""A plain call of the stateless era: one coroutine from its headers to its answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from mcp_app.server.context import current_call, leave
from mcp_app.transports.http.plain_call import METHOD, PlainCall
from mcp_app.transports.http.plain_headers import known_headers
from mcp_app.transports.http.replies import Reply, was_ours
from mcp_app.transports.http.request_handler import NO_WAY_BACK
from mcp_app.transports.http.responses import json_start

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mcp_app.process.running import Answer
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.transports.http.plain_headers import KnownTool

ENCODED_METHOD: Final = METHOD.encode()
"""The value of `Mcp-Method`."""
_PARAMS: Final = 3
"""The name, the arguments and `_meta`."""


class StatelessCall(PlainCall):
    """A call that its connection's task runs; it ends if its client leaves."""

    async def serve(self) -> None:
        current = self.process
        task = current.uploads.begin(self.arrived)
        try:
            first = await self.receive()
        except (Exception, asyncio.CancelledError) as error:
            return await self._unread(task, error)
        finally:
            current.uploads.end(task)
        if not self._is_recognised(first):
            return await self._otherwise(first)
        current.running.begin(self, self, task)
        if self._raised is not None:
            return await self._finish(None)
        tool, token = self._tool, current_call.set(self)
        plain = tool.plain
        try:
            output: Any = await (
                plain.run(**self._bound) if tool.direct else self._run_elsewhere()
            )
            if tool.direct and type(output) is not plain.scalar:
                output = plain.convert(output)
        except BaseException as error:
            leave(token)
            return await self._finish(error)
        current_call.reset(token)
        body = self._encoded(output)
        if body is None:
            return await self._finish(output)
        current.running.end(self)
        # Whoever still has the call sends nothing more.
        self._reply = NO_WAY_BACK
        try:
            self._record(body)
            await self.send(json_start(body, self.known.cors))
            await self.send({"type": "http.response.body", "body": body})
        except Exception as error:
            self._unsent(error)
        return None

    async def _finish(self, output: Any) -> None:
        """Answer as any stateless call does whose function has returned, or raised."""
        answering = self._answer_of(output)
        # An error has the frames that it went through: none of them must hold it.
        del output
        try:
            await self._conclude(answering)
        except Exception as error:
            self._log(error)

    async def _conclude(self, answering: Awaitable[Answer]) -> None:
        answer: Answer | None
        try:
            answer = await answering
        except asyncio.CancelledError:
            if not was_ours(self):
                raise
            answer = None
        finally:
            self._end()
            reply = self.outgoing
            self._forget_reply()
            reply.over()
        await reply.conclude(answer)

    def _end(self) -> None:
        self.process.running.end(self)

    def _is_of_its_era(self, params: JsonObject, body: bytes) -> bool:
        known = self.known
        if known.revision is None or len(params) != _PARAMS:
            return False
        self.meta = meta = params["_meta"]
        if meta == known.meta:
            return True
        self._check_depth(body)
        return known.has_plain_meta(meta, len(body))

    def _expected_tool(self) -> KnownTool | None:
        known = self.known
        if known.revision is None:
            return None
        self.revision = known.revision
        key = self.caller, self.raw.get(b"mcp-name"), known.client
        return known_headers.tools.get(key)

    def _known_tool(self, name: str) -> KnownTool | None:
        kept, header = known_headers.tools, self.raw.get(b"mcp-name")
        key = self.caller, header, self.known.client
        tool = kept.get(key)
        if tool is not None:
            return tool if tool.entry.definition.name == name else None
        return self._find_tool(kept, key, name) if header == name.encode() else None

    @property
    def outgoing(self) -> Any:  # type: ignore[override]
        if self._reply is None:
            self._reply = Reply(self, self)
        return self._reply

    def finished(self, task: asyncio.Task[Answer]) -> None:
        """Do nothing: the call has no task of its own."""
