"""A trial whose lines are shown while it runs: JSON objects, one in each line.

Only for pages with a script, under ASGI.  Under WSGI Django would run the generator on
a loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import translation

from mcp_app.admin.trying.presentation import MOST_LINES, line_of
from mcp_app.protocol import jsonrpc
from mcp_app.transports.in_process import Message
from mcp_app.workbench.trying.trial import Plan, Trial, run

CONTENT_TYPE: Final = "application/x-ndjson"
Part: TypeAlias = dict[str, str]


def is_wanted(request: HttpRequest) -> bool:
    """Return whether the page takes lines, and the server can send them."""
    accepted = request.headers.get("Accept", "")
    return isinstance(request, ASGIRequest) and CONTENT_TYPE in accepted


class TrialLines:
    """Yields what comes along the way, then `part` of what came of it.

    The call begins with the first line, which has `ticket` for the next run: whoever
    stops waiting may begin anew.  Closing the iterator cancels it, and so does
    `close`, which Django calls when the response is over: if the browser leaves while
    something is sent, nobody closes the iterator.
    """

    def __init__(self, plan: Plan, ticket: str, part: Callable[[Trial], Part]) -> None:
        self._plan = plan
        self._ticket = ticket
        self._part = part
        self._language = translation.get_language()
        self._task: asyncio.Task[Trial] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._task = task = asyncio.create_task(run(self._plan, messages.put_nowait))
        task.add_done_callback(lambda _: messages.put_nowait(None))
        left = MOST_LINES
        try:
            yield _line({"to": "begun", "once": self._ticket})
            while (message := await messages.get()) is not None:
                text = "" if message.sent or not left else line_of(message)
                if text:
                    left -= 1
                    yield _line({"to": "along", "text": text})
            if not task.cancelled():
                yield self._last(task.result())
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _last(self, trial: Trial) -> bytes:
        with translation.override(self._language):
            return _line({"to": "result", **self._part(trial)})

    def close(self) -> None:
        """Cancel the call, if it still runs; callable from any thread."""
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)


def response(lines: TrialLines) -> StreamingHttpResponse:
    """Return a response that no proxy is to hold back, compress or store."""
    streamed = StreamingHttpResponse(lines, content_type=CONTENT_TYPE)
    streamed["Cache-Control"] = "no-store"
    streamed["X-Accel-Buffering"] = "no"
    streamed["Content-Encoding"] = "identity"
    return streamed


def _line(value: Part) -> bytes:
    return jsonrpc.write(value) + b"\n"
