"""A way to a service that a test can cut, and open again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tests.drill.ports import HOST, claimed, free_port

PIECE: Final = 65_536


class Passage:
    """Passes on what comes to a port of its own; `altered` sees what goes back."""

    def __init__(
        self,
        target: tuple[str, int],
        altered: Callable[[bytes], bytes] = lambda piece: piece,
    ) -> None:
        self.port = free_port()
        self._target = target
        self._altered = altered
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._stranded: set[socket.socket] = set()

    def strand(self) -> None:
        """From now on nothing passes on connections that are open; new ones work.

        Nobody here is told, as where a host is lost; what ran there is over.
        """
        with self._lock:
            self._stranded.update(self._open)
            for far in self._open[1::2]:
                # It has gone, perhaps, and its locks with it.
                with suppress(OSError):
                    far.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        self._listener = claimed(self.port)
        threading.Thread(
            target=self._accept, args=(self._listener,), daemon=True
        ).start()

    def cut(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
            ended, self._open = self._open, []
            self._stranded.clear()
        for each in [*ended, *([] if listener is None else [listener])]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: socket.socket) -> None:
        # It is closed at the cut.
        with suppress(OSError):
            while True:
                self._pass_on(listener, listener.accept()[0])

    def _pass_on(self, listener: socket.socket, near: socket.socket) -> None:
        far = socket.create_connection(self._target)
        with self._lock:
            self._open += [near, far]
            late = listener is not self._listener
        if late:
            # It came with the cut.
            near.close()
            far.close()
            return
        for source, sink, change in (
            (near, far, bytes),
            (far, near, self._altered),
        ):
            threading.Thread(
                target=self._copy, args=(source, sink, change), daemon=True
            ).start()

    def _copy(
        self,
        source: socket.socket,
        sink: socket.socket,
        change: Callable[[bytes], bytes],
    ) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                if source not in self._stranded:
                    sink.sendall(change(piece))
        if source in self._stranded:
            return
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def through(url: str, port: int, passage: Passage) -> str:
    """Return a service's URL by way of a passage; `port` is what the service has."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    assert host in (HOST, f"{HOST}:{port}"), url
    return f"{scheme}://{user}{at}{HOST}:{passage.port}/{path}"
