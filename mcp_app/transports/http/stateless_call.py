"""A plain call of the stateless era: one coroutine from its headers to its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.protocol import negotiation
from mcp_app.protocol.headers import SESSION_HEADER
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.context import current_call, reset_current_call
from mcp_app.server.outcome import Response
from mcp_app.server.run import NO_WAY_BACK
from mcp_app.streams.open_session import OpenSession
from mcp_app.transports.http.logged_replies import LoggedReply
from mcp_app.transports.http.plain_call import METHOD, PlainCall
from mcp_app.transports.http.plain_headers import KnownTool, ToolKey, known_headers
from mcp_app.transports.http.replies import Reply, was_cancelled_by_end
from mcp_app.transports.http.responses import OK, json_start
from mcp_app.transports.http.resumption import Returning

ENCODED_METHOD: Final = METHOD.encode()
"""The value of `Mcp-Method`."""
_PARAMS: Final = 3
"""How many members `params` has: the name, the arguments and `_meta`."""


class StatelessCall(PlainCall):
    """A call that its connection's task runs; it ends if its client leaves."""

    async def serve(self) -> None:
        current = self.process
        task = current.uploads.begin_upload(self.arrived)
        try:
            first = await self.receive()
        except (Exception, asyncio.CancelledError) as error:
            return await self._answer_unread(task, error)
        finally:
            current.uploads.end_upload(task)
        if not self._is_recognised(first):
            return await self._otherwise(first)
        current.running.begin_call(self, self, task)
        if self._raised is not None:
            return await self._finish_call(None)
        tool, token = self._tool, current_call.set(self)
        plain = tool.plain
        try:
            output: Any = await (
                plain.run(**self._bound) if tool.direct else self._run_elsewhere()
            )
            if tool.direct and type(output) is not plain.scalar:
                output = plain.convert(output)
        except BaseException as error:
            reset_current_call(token)
            return await self._finish_call(error)
        current_call.reset(token)
        body = self._encode_answer(output)
        if body is None:
            return await self._finish_call(output)
        current.running.end_call(self)
        # From now on, user code that kept its Context can send nothing.
        self._reply = NO_WAY_BACK
        try:
            self._record(body)
            await self.send(json_start(body, self.plain_headers.cors))
            await self.send({"type": "http.response.body", "body": body})
        except Exception as error:
            self._log_unsent(error)
        return None

    async def _finish_call(self, output: Any) -> None:
        """Answer as any other stateless call; `output` may be an error."""
        answering = self._answer_of(output)
        # The traceback of an error refers to this frame: avoid a reference cycle.
        del output
        try:
            await self._conclude_call(answering)
        except Exception as error:
            self._log_failure(error)

    async def _conclude_call(self, answering: Awaitable[Response]) -> None:
        answer: Response | None
        try:
            answer = await answering
        except asyncio.CancelledError:
            if not was_cancelled_by_end(self):
                raise
            answer = None
        finally:
            self._unregister_call()
            reply = self.reply
            self._forget_reply()
            reply.forget_run()
        await reply.conclude(answer)

    def _unregister_call(self) -> None:
        self.process.running.end_call(self)

    def _is_of_its_era(self, params: JsonObject, body: bytes) -> bool:
        headers = self.plain_headers
        if headers.revision is None or len(params) != _PARAMS:
            return False
        self.meta = meta = params["_meta"]
        if meta == headers.meta:
            return True
        self._check_depth(body)
        return headers.accept_meta(meta, len(body))

    def _expected_tool(self) -> KnownTool | None:
        headers = self.plain_headers
        if headers.revision is None:
            return None
        self.revision = headers.revision
        key = self.caller, self.raw.get(b"mcp-name"), headers.client
        return known_headers.tools.get(key)

    def _known_tool(self, name: str) -> KnownTool | None:
        known_tools, header = known_headers.tools, self.raw.get(b"mcp-name")
        key = self.caller, header, self.plain_headers.client
        tool = known_tools.get(key)
        if tool is not None:
            return tool if tool.entry.definition.name == name else None
        return (
            self._find_tool(known_tools, key, name) if header == name.encode() else None
        )

    @property
    def reply(self) -> Any:
        if self._reply is None:
            self._reply = Reply(self, self)
        return self._reply

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Do nothing: the call has no task of its own."""


# -- session call ----------------------------------------------------------------------
# A plain call in a session: it goes on if its client leaves.
#
# So it runs in a task of its own.  From Python 3.12 on the task begins at once, and
# most calls end in that first step.  The session must be cached, the tool must be one
# that may run twice, and no running call may have the same id.

_SESSION_PARAMS: Final = 2
"""How many members `params` has without `_meta`: the name and the arguments."""
LAST: Final = b""
"""A key, in place of a tool's name, for the tool that was called last."""


class SessionCall(PlainCall):
    """A call with its own task, and the future that its connection waits for."""

    sign = f'"{METHOD}"'.encode()
    session: OpenSession
    _waiting: asyncio.Future[Response | None] | None = None
    _answer: Response | None = None
    _is_detached = False
    """Whether the connection is over while the call goes on."""

    async def serve(self) -> None:
        current = self.process
        task = current.uploads.begin_upload(self.arrived)
        try:
            first = await self.receive()
        except (Exception, asyncio.CancelledError) as error:
            return await self._answer_unread(task, error)
        finally:
            current.uploads.end_upload(task)
        if not self._is_recognised(first):
            return await self._otherwise(first)
        current.running.start_at_once(self, self._run_call(), self)
        return await self._deliver_answer()

    async def _deliver_answer(self) -> None:
        try:
            answer = self._answer or await self._answer_future()
            if answer is None or answer.status != OK or self._reply is not None:
                await self.reply.conclude(answer)
            else:
                # From now on, user code that kept its Context can send nothing.
                self._reply, body = NO_WAY_BACK, answer.body
                await self.send(json_start(body, self.plain_headers.cors))
                await self.send({"type": "http.response.body", "body": body})
        except asyncio.CancelledError:
            if self._reply is not NO_WAY_BACK:
                self.reply.gone()
            raise
        except Exception as error:
            self._log_unsent(error)
        finally:
            self._note_connection_end()

    async def _run_call(self) -> Response:
        # `StatelessCall.serve` has the same lines: a coroutine for both would add 2 %
        # to the time of each call.
        if self._raised is not None:
            return await self._answer_of(None)
        tool, token = self._tool, current_call.set(self)
        plain = tool.plain
        try:
            output: Any = await (
                plain.run(**self._bound) if tool.direct else self._run_elsewhere()
            )
            if tool.direct and type(output) is not plain.scalar:
                output = plain.convert(output)
        except BaseException as error:
            reset_current_call(token)
            return await self._answer_of(error)
        current_call.reset(token)
        body = self._encode_answer(output)
        if body is None:
            return await self._answer_of(output)
        self._record(body)
        return Response(OK, body)

    def _note_connection_end(self) -> None:
        if self._reply is not NO_WAY_BACK:
            self.reply.forget_run()
        # Without a task, the call has ended.
        if self.task is None:
            self._forget_reply()
        else:
            self._is_detached = True

    def _expected_tool(self) -> KnownTool | None:
        """Return the tool that was called last in the session, which must be cached."""
        session = self.process.sessions.cached(
            self.raw[SESSION_HEADER].decode("latin-1"), self.principal, self.slug
        )
        revision = self.plain_headers.revision
        if session is None or (
            revision is not None and revision is not session.revision
        ):
            # `_is_recognised` catches it; the request is then served as any other.
            raise LookupError
        self.session, self.revision = session, session.revision
        return known_headers.tools.get((self.caller, LAST, session.digest))

    def _is_in_turn(self) -> bool:
        return self.request_id not in self.session.running

    def _is_of_its_era(self, params: JsonObject, body: bytes) -> bool:
        if len(params) != _SESSION_PARAMS + ("_meta" in params):
            return False
        self.meta = negotiation.meta_of(params) or {}
        if self.meta:
            self._check_depth(body)
        return negotiation.PROTOCOL_VERSION not in self.meta

    def _known_tool(self, name: str) -> KnownTool | None:
        known_tools, digest = known_headers.tools, self.session.digest
        key: ToolKey = self.caller, name, digest
        tool = known_tools.get(key) or self._find_tool(known_tools, key, name)
        last = self.caller, LAST, digest
        if tool is not None and known_tools.get(last) is not tool:
            known_tools.keep_tool(last, tool)
        return tool

    def _may_serve(self, entry: ToolEntry) -> bool:
        """Whether a call may run twice: if not, it needs a row before it runs."""
        return entry.definition.hints.repeatable

    @property
    def reply(self) -> Any:
        if self._reply is None:
            log, request = self.process.log, self.request_id
            self._reply = LoggedReply(self, self, self.session, log, request)
            self._reply.put_answer_into(self._answer_future())
        return self._reply

    def returning(self) -> Returning:
        return Returning(self, self.process, self.principal)

    def finished(self, task: asyncio.Task[Response]) -> None:
        """Take the answer of the call; one that was cancelled has none."""
        if self._reply is not None:
            self._reply.finished(task)
        elif task.cancelled() or task.exception() is not None:
            self._resolve_answer(None)
        elif self._waiting is None:
            self._answer = task.result()
        else:
            self._resolve_answer(task.result())
        if self._is_detached:
            self._forget_reply()

    def _resolve_answer(self, answer: Response | None) -> None:
        if not self._answer_future().done():
            self._answer_future().set_result(answer)

    def _answer_future(self) -> asyncio.Future[Response | None]:
        if self._waiting is None:
            self._waiting = self.process.adapters.loop.create_future()
        return self._waiting
