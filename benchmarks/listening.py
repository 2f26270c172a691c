"""Many standing streams at once, read by one thread as something comes.

One thread and one selector read all connections, without `http.client`: whoever
measures when a message arrives must not be what it waits for.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.client import TIMEOUT, WrongAnswerError
from benchmarks.counting import Body
from benchmarks.messages import stateful

TOLD = "notifications/tools/list_changed"
_OPENED = "notifications/subscriptions/acknowledged"
_RECEIVED = 64 * 1024
_QUIET_SECONDS = 1.0
_AT_ONCE = 100


def raise_open_files() -> None:
    """Let this process, and those that it starts, open as many files as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def standing(port: int, session: str) -> bytes:
    """Return the GET that opens the standing stream of a session, as it is sent."""
    request = stateful(session, "", {})
    headers = {**request.headers, "Accept": "text/event-stream"}
    headers.pop("Content-Type")
    lines = [("Host", f"127.0.0.1:{port}"), *headers.items()]
    text = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"GET /mcp HTTP/1.1\r\n{text}\r\n".encode()


class Listener:
    """One stream: open once its first event has come, and then counting its news."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.socket.sendall(request)
        self._body, self._rest = Body(), b""
        self.open = False

    def receive(self) -> list[str]:
        """Read what has come; return the methods of its messages."""
        piece = self.socket.recv(_RECEIVED)
        if not piece:
            raise WrongAnswerError("The server closed a stream.")
        *events, self._rest = (self._rest + self._body.feed(piece)).split(b"\n\n")
        if self._body.ended:
            raise WrongAnswerError("The server ended a stream.")
        return [method for event in events for method in self._methods(event)]

    def _methods(self, event: bytes) -> Iterator[str]:
        for line in event.split(b"\n"):
            self.open = self.open or line.startswith((b"id:", b"data:"))
            # The first event of a session's stream has an id and no data.
            if line.startswith(b"data:") and line.strip() != b"data:":
                yield str(json.loads(line[len(b"data:") :])["method"])


News = tuple[Listener, str, float]
"""Who was told a message of which method, and when (monotonic)."""


class Audience:
    """Streams that are open."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    @contextmanager
    def joined(self, port: int, requests: Sequence[bytes]) -> Iterator[list[Listener]]:
        """Open a stream for each request, and keep all until the block ends."""
        with ExitStack() as stack:
            opened: list[Listener] = []
            for request in requests:
                listener = Listener(port, request)
                stack.callback(self._leave, listener)
                self._selector.register(listener.socket, selectors.EVENT_READ, listener)
                opened.append(listener)
                # More that wait at once are refused.
                if len(opened) % _AT_ONCE == 0:
                    self._until_open(opened)
            self._until_open(opened)
            yield opened

    def _leave(self, listener: Listener) -> None:
        self._selector.unregister(listener.socket)
        listener.socket.close()

    def _until_open(self, listeners: Sequence[Listener]) -> None:
        end = time.monotonic() + TIMEOUT
        while not all(each.open for each in listeners):
            if time.monotonic() > end:
                raise WrongAnswerError(f"Not all streams opened in {TIMEOUT:g} s.")
            self._unasked(self.read(_QUIET_SECONDS))

    def quiet(self, seconds: float) -> None:
        """Read for so long; nothing may come but heartbeats."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._unasked(self.read(left))

    @staticmethod
    def _unasked(news: Sequence[News]) -> None:
        if told := [method for _, method, _ in news if method != _OPENED]:
            raise WrongAnswerError(f"Told what nobody changed: {told[0]}.")

    def read(self, seconds: float) -> list[News]:
        """Wait so long at most; return who was told what."""
        return [
            (key.data, method, time.monotonic())
            for key, _ in self._selector.select(seconds)
            for method in key.data.receive()
        ]

    def told(self, listeners: Sequence[Listener]) -> list[float]:
        """Wait until these are told, once and nobody else; return when (monotonic)."""
        waiting, times = set(listeners), list[float]()
        end = time.monotonic() + TIMEOUT
        while waiting:
            if time.monotonic() > end:
                raise WrongAnswerError(f"{len(waiting)} streams were not told.")
            for listener, method, when in self.read(_QUIET_SECONDS):
                if listener not in waiting or method != TOLD:
                    raise WrongAnswerError(f"{method} came where it must not.")
                waiting.remove(listener)
                times.append(when)
        return times
