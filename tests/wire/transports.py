"""Clients that send an exchange over each transport, and judge all that comes.

A transport is an entry of `TRANSPORTS`: a context manager that takes the process, a
revision and the address of a server, and gives a `Wire`.
"""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from asgiref.sync import SyncToAsync
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from django.test import RequestFactory

import mcp_app.asgi
from mcp_app.interface.principal import Principal
from mcp_app.process.background import background
from mcp_app.transports.stdio import server
from mcp_app.transports.stdio.connection import Connection
from mcp_app.transports.stdio.pipes import Output
from tests.asgi_client import EVERYTHING, Client, Params, Visit
from tests.old_client import OldClient
from tests.serving import PATIENCE_S
from tests.wire.by_wsgi import WsgiCheck
from tests.wire.judging import Judge
from tests.wire.middleware import Application, Receive, Scope, Send, WireCheck

if TYPE_CHECKING:
    from mcp_app.process.runtime import Process

JsonObject: TypeAlias = dict[str, Any]
Headers: TypeAlias = Mapping[str, str | None]

ACCEPTED: Final = 202
ANSWERS: Final[Mapping[str, JsonObject]] = {
    "elicitation/create": {"action": "accept", "content": {"item": "tea", "count": 2}},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "Said."},
    },
    "roots/list": {"roots": [{"uri": "file:///here", "name": "here"}]},
    "ping": {},
}


class Wire(ABC):
    streams = True

    def __init__(self, version: str) -> None:
        # Its messages, which are the same on each transport.
        self.client = Client(cast("WireCheck", None), version)
        self.version = version
        self.stateless = self.client.revision.stateless
        self.judge = Judge(version)
        self.silent = False
        """Whether questions stay without an answer."""
        self.heard: list[JsonObject] = []
        """What came, in order."""
        self.listening: list[object] = []
        """The ids of the requests by which it listens."""
        self._came = asyncio.Condition()
        self._failed: BaseException | None = None

    @abstractmethod
    async def say(
        self, value: object, *, answers: int | None = None, **headers: str | None
    ) -> None:
        """Send a message, a batch, or bytes; return when it is answered.

        `answers` is how many messages answer it where they cannot be counted by its
        requests. `headers` are changes that only HTTP has.
        """

    @abstractmethod
    async def begin(self, message: JsonObject) -> None:
        """Send a request whose answer is not waited for."""

    @abstractmethod
    async def listen(self, **notifications: Any) -> None:
        """Begin to hear what is said outside of calls."""

    async def open(self) -> Wire:
        if not self.stateless:
            await self.say(self.client.initialize())
            await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def ask(self, method: str, params: Params = None, **more: Any) -> JsonObject:
        message = self.client.message(method, params, **more)
        await self.say(message)
        return await self.until(lambda each: each.get("id") == message["id"])

    def _listening(self, notifications: JsonObject) -> JsonObject:
        params = {"notifications": notifications}
        message = self.client.message("subscriptions/listen", params)
        self.listening.append(message["id"])
        return message

    async def call(self, tool: str, **arguments: Any) -> JsonObject:
        params = {"name": tool, "arguments": arguments}
        return await self.ask("tools/call", params)

    async def until(self, wanted: Callable[[JsonObject], bool]) -> JsonObject:
        def found() -> list[JsonObject]:
            # The answer to a request has no method; a question of the server has one.
            return [each for each in self.heard if wanted(each)]

        await self.wait_for(found)
        return found()[-1]

    async def wait_for(self, wanted: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._came:
            await self._came.wait_for(lambda: self._failed or wanted())
        if self._failed is not None:
            raise self._failed

    async def until_told(self, method: str) -> JsonObject:
        return await self.until(lambda each: each.get("method") == method)

    async def _take(self, message: JsonObject) -> None:
        """Judge what came; answer it where it is a question."""
        try:
            self.judge.came(message)
        except AssertionError as error:
            self._failed = error
        async with self._came:
            self.heard.append(message)
            self._came.notify_all()
        if self._failed is not None:
            raise self._failed
        if "method" in message and "id" in message and not self.silent:
            answer = {"id": message["id"], "result": ANSWERS[message["method"]]}
            await self.say({"jsonrpc": "2.0", **answer})


def asked_by(value: object) -> list[object]:
    return [
        each["id"]
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, dict) and "method" in each and "id" in each
    ]


class HttpWire(Wire):
    """Streamable HTTP: what comes is checked on its way, too, by `WireCheck`."""

    def __init__(self, version: str, slug: str, check: WireCheck) -> None:
        super().__init__(version)
        path = f"/mcp/{slug}" if slug else "/mcp"
        self.client = Client(check, version, path=path, capabilities=EVERYTHING)
        self._standing: list[asyncio.Task[None]] = []
        self._begun: list[Visit] = []
        self._visits: list[Visit] = []

    async def say(
        self, value: object, *, answers: int | None = None, **headers: str | None
    ) -> None:
        visit = self._posted(value, headers)
        await self._read(visit)
        assert visit.raw or visit.status == ACCEPTED

    def _posted(self, value: object, headers: Headers) -> Visit:
        self.judge.sent(value)
        named = {name.replace("_", "-"): each for name, each in headers.items()}
        if isinstance(value, bytes):
            return self.client.visit("POST", value, headers=named)
        return self.client.post(value, named)

    async def begin(self, message: JsonObject) -> None:
        self._begun.append(self._posted(message, {}))

    async def _read(self, visit: Visit) -> None:
        self._visits.append(visit)
        await visit.begun()
        session = visit.headers.get("mcp-session-id")
        self.client.session = session or self.client.session
        if visit.headers.get("content-type") == "text/event-stream":
            while (message := await visit.message()) is not None:
                await self._take(message)
        elif await visit.body():
            for message in await visit.messages():
                await self._take(message)
        await visit.done()

    async def send(self, method: str, **headers: str | None) -> None:
        await self._read(self.client.visit(method, headers=headers))

    async def listen(self, **notifications: Any) -> None:
        if self.stateless:
            visit = self._posted(self._listening(notifications), {})
        else:
            visit = self.client.visit("GET")
        self._standing.append(asyncio.create_task(self._read(visit)))
        await visit.opened() if self.stateless else await visit.begun()

    async def close(self, process: Process) -> None:
        for listener in list(process.listeners):
            listener.end()
        for task in self._standing:
            async with asyncio.timeout(PATIENCE_S):
                await task
        for visit in self._begun:
            await self._read(visit)

    async def leave(self) -> None:
        for task in self._standing:
            task.cancel()
        await asyncio.gather(*self._standing, return_exceptions=True)
        for visit in self._visits + self._begun:
            if not visit.task.done():
                await visit.leave()


@asynccontextmanager
async def over_http(
    application: Callable[[], Application],
    process: Process,
    version: str,
    slug: str,
    kind: type[HttpWire] = HttpWire,
) -> AsyncIterator[Wire]:
    check = WireCheck(application())
    wire = kind(version, slug, check)
    try:
        yield wire
        await wire.close(process)
    finally:
        await wire.leave()
    assert check.violations == []


class WithoutStreams(HttpWire):
    """HTTP where each answer is whole before it is sent."""

    streams = False

    async def listen(self, **notifications: Any) -> None:
        if self.stateless:
            await self.ask("subscriptions/listen", {"notifications": notifications})
        else:
            await self.send("GET")


def wsgi_as_asgi(report: Callable[[str], object]) -> Application:
    """Return Django's WSGI application, which a thread calls, for an ASGI client."""
    checked = WsgiCheck(cast("Any", WSGIHandler()), report)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        environment = _environment(scope, (await receive())["body"])
        begun: list[Any] = []
        parts = await asyncio.to_thread(_called, checked, environment, begun.extend)
        headers = [(k.lower().encode(), v.encode("latin-1")) for k, v in begun[1]]
        start = {"type": "http.response.start", "status": int(begun[0][:3])}
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": b"".join(parts)})

    return application


def _called(
    checked: WsgiCheck, environment: JsonObject, begin: Callable[[Any], object]
) -> list[bytes]:
    """Call it as a server's thread does, which keeps no connection here."""
    try:
        return checked(environment, lambda *given: begin(given))
    finally:
        connections.close_all()


def _environment(scope: Scope, body: bytes) -> JsonObject:
    named = {name.decode(): each.decode("latin-1") for name, each in scope["headers"]}
    made = RequestFactory().generic(scope["method"], scope["path"], body, headers=named)
    return made.environ


@asynccontextmanager
async def over_wsgi(process: Process, version: str, slug: str) -> AsyncIterator[Wire]:
    violations: list[str] = []
    before, background._loop = background._loop, asyncio.get_running_loop()
    application = wsgi_as_asgi(violations.append)
    try:
        async with over_http(
            lambda: application, process, version, slug, WithoutStreams
        ) as wire:
            yield wire
        assert violations == []
    finally:
        background._loop = before


class OneStream(Wire):
    """What is sent is one thing, and what comes another."""

    @abstractmethod
    async def _carry(self, data: bytes) -> list[JsonObject]:
        """Send a message; return why it is refused, where that is said at once."""

    async def say(
        self, value: object, *, answers: int | None = None, **headers: str | None
    ) -> None:
        before = len(self.heard)
        accepted = await self._send(value)

        def answered() -> bool:
            came = [each for each in self.heard[before:] if "method" not in each]
            if answers is not None:
                return len(came) >= answers
            ids = [each.get("id") for each in came]
            return not accepted or all(each in ids for each in asked_by(value))

        await self.wait_for(answered)

    async def begin(self, message: JsonObject) -> None:
        assert await self._send(message)

    async def _send(self, value: object) -> bool:
        self.judge.sent(value)
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        refused = await self._carry(data)
        for message in refused:
            await self._take(message)
        return not refused


class StdioWire(OneStream):
    def __init__(self, version: str, process: Process, slug: str) -> None:
        super().__init__(version)
        incoming, self._to = os.pipe()
        self._from, outgoing = os.pipe()
        self._descriptors = (incoming, self._to, self._from, outgoing)
        self._broke = asyncio.Event()
        self._output = Output(outgoing, self._broke.set)
        connection = Connection(
            process, slug or "default", Principal.ANONYMOUS, self._output.write_message
        )
        self._process = process
        self._rest = b""
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._from, self._readable)
        self._tasks = [
            loop.create_task(server._take_lines(connection, incoming)),
            loop.create_task(self._take_lines()),
        ]

    def _readable(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._from, 65_536)).split(b"\n")
        for line in lines:
            self._arrived.put_nowait(line)

    async def _take_lines(self) -> None:
        while True:
            value = json.loads(await self._arrived.get())
            for message in value if isinstance(value, list) else [value]:
                await self._take(message)

    async def _carry(self, data: bytes) -> list[JsonObject]:
        os.write(self._to, data + b"\n")
        return []

    async def listen(self, **notifications: Any) -> None:
        if self.stateless:
            await self.begin(self._listening(notifications))
            await self.until_told("notifications/subscriptions/acknowledged")

    async def close(self) -> None:
        for listener in list(self._process.listeners):
            listener.end()
        if any("subscriptionId" in str(each) for each in self.heard):
            await self.until(lambda one: "result" in one and "_meta" in one["result"])
        await self._output.wait_until_written()

    async def leave(self) -> None:
        for listener in list(self._process.listeners):
            listener.end()
        asyncio.get_running_loop().remove_reader(self._from)
        for task in self._tasks:
            failed = task.exception() if task.done() else None
            task.cancel()
            await asyncio.wait([task])
            self._failed = self._failed or failed
        asyncio.get_running_loop().remove_reader(self._descriptors[0])
        # Its thread ends where its loop is closed.
        self._output._loop = asyncio.new_event_loop()
        self._output._loop.close()
        self._output._queue.put(asyncio.Event())
        for descriptor in self._descriptors:
            os.close(descriptor)
        if self._failed is not None:
            raise self._failed
        assert not self._broke.is_set()


@asynccontextmanager
async def over_stdio(process: Process, version: str, slug: str) -> AsyncIterator[Wire]:
    wire = StdioWire(version, process, slug)
    try:
        yield wire
        await wire.close()
    finally:
        await wire.leave()


class SseWire(OneStream):
    """The older HTTP: what is posted is answered on the stream of the session."""

    def __init__(self, version: str, slug: str, check: WireCheck) -> None:
        super().__init__(version)
        path = f"/mcp/{slug}/sse" if slug else "/mcp/sse"
        self._old = OldClient(check, version, path=path)

    async def connect(self) -> None:
        await self._old.connect()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while (message := await self._old.stream.message()) is not None:
            await self._take(message)

    async def _carry(self, data: bytes) -> list[JsonObject]:
        kind = {"content-type": "application/json"}
        visit = self._old.visit("POST", self._old.messages, data, **kind)
        refused = await visit.messages() if await visit.body() else []
        assert (visit.status == ACCEPTED) is (visit.raw == b"")
        return refused

    async def listen(self, **notifications: Any) -> None:
        """The stream of the session says everything."""

    async def leave(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._old.stream.leave()


@asynccontextmanager
async def over_sse(process: Process, version: str, slug: str) -> AsyncIterator[Wire]:
    check = WireCheck(_consumer())
    wire = SseWire(version, slug, check)
    await wire.connect()
    try:
        yield wire
    finally:
        await wire.leave()
    assert check.violations == []


Transport: TypeAlias = Callable[
    ["Process", str, str], AbstractAsyncContextManager[Wire]
]


def _consumer() -> Application:
    return mcp_app.asgi.application(ASGIHandler())


TRANSPORTS: Final[Mapping[str, Transport]] = {
    "consumer": partial(over_http, _consumer),
    "view": partial(over_http, lambda: cast("Application", ASGIHandler())),
    "wsgi": over_wsgi,
    "stdio": over_stdio,
    "HTTP+SSE": over_sse,
}


def close_connections() -> None:
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
