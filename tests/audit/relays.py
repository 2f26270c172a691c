"""A way to a database that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

HOST: Final = "127.0.0.1"
PORTS: Final = {"postgres": 5432, "mysql": 3306}
CHUNK: Final = 65_536
COUNTERS: Final = b"mcp_app_callstatistic"
COMMIT: Final = b"COMMIT"


class Relay:
    """Listens on loopback, and passes everything on to a database and back."""

    def __init__(self, url: str) -> None:
        there = urlsplit(url)
        self._there = (there.hostname or HOST, there.port or PORTS[there.scheme])
        self._listener = socket.create_server((HOST, 0))
        port = self._listener.getsockname()[1]
        user = f"{there.username}@" if there.username else ""
        self.url = f"{there.scheme}://{user}{HOST}:{port}{there.path}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._away = False
        self._breaks: list[bool] = []
        self._start(self._accept)

    def cut(self) -> None:
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def break_commits(self, times: int) -> None:
        """Cut connections at commits of calls: by turns before and after them."""
        self._breaks = [number % 2 == 1 for number in range(times)]

    @property
    def breaks(self) -> int:
        return len(self._breaks)

    @contextmanager
    def away(self) -> Iterator[None]:
        self._away = True
        self.cut()
        try:
            yield
        finally:
            self._away = False

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _start(self, work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self._away:
                    here.close()
                    continue
                there = socket.create_connection(self._there)
                with self._lock:
                    self._open |= {here, there}
                self._start(self._pass_on, here, there)
                self._start(self._pass_on, there, here)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        counted = False
        with suppress(OSError):
            while piece := source.recv(CHUNK):
                counted = counted or COUNTERS in piece
                if counted and COMMIT in piece:
                    counted = False
                    if self._breaks:
                        self._break(self._breaks.pop(), piece, source, sink)
                        break
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()

    def _break(
        self, after: bool, piece: bytes, source: socket.socket, sink: socket.socket
    ) -> None:
        """Let nobody learn whether a commit was one."""
        source.shutdown(socket.SHUT_RDWR)
        if after:
            sink.sendall(piece)


@contextmanager
def relay(url: str) -> Iterator[Relay]:
    with closing(Relay(url)) as made:
        yield made
