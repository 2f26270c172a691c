"""The ASGI servers that the fixture set runs on.

Each serves in this one process, but gunicorn: it forks, and a worker serves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

import daphne.server
import uvicorn
from granian.constants import Interfaces
from granian.server.embed import Server as GranianServer
from gunicorn.app.base import BaseApplication

from tests.drill.ports import HOST

# Longer than the application takes to drain.
GRACE_S: Final = 30


def serve_with_daphne(application: Any, listener: socket.socket) -> None:
    listener.setblocking(False)
    daphne.server.Server(
        application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name=""
    ).run()


def serve_with_uvicorn(application: Any, listener: socket.socket) -> None:
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


def serve_with_granian(application: Any, listener: socket.socket) -> None:
    port: int = listener.getsockname()[1]
    # Granian takes no socket of ours.
    listener.close()
    asyncio.run(_serve_with_granian(application, port))


async def _serve_with_granian(application: Any, port: int) -> None:
    server = GranianServer(
        application,
        address=HOST,
        port=port,
        interface=Interfaces.ASGINL,
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(server.stop)

    # A plain handler, which an application can chain its own before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    await server.serve()


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """An application that is there before the fork, as with `--preload`."""

    def __init__(self, application: Any, listener: socket.socket) -> None:
        self._application = application
        self._listener = listener
        super().__init__()

    def load_config(self) -> None:
        # It closes what it was given.
        self.cfg.set("bind", f"fd://{os.dup(self._listener.fileno())}")
        self.cfg.set("worker_class", "uvicorn_worker.UvicornWorker")
        self.cfg.set("preload_app", True)
        self.cfg.set("loglevel", "error")
        self.cfg.set("graceful_timeout", GRACE_S)
        self.cfg.set("control_socket_disable", True)

    def load(self) -> Any:
        return self._application


def serve_with_gunicorn(application: Any, listener: socket.socket) -> None:
    parent = os.getpid()
    try:
        _Gunicorn(application, listener).run()
    except SystemExit as end:
        if os.getpid() != parent:
            # What is around this function is the parent's to clear away.
            os._exit(end.code if isinstance(end.code, int) else 1)
        if end.code:
            raise


SERVERS: Final[Mapping[str, Callable[[Any, socket.socket], None]]] = {
    "daphne": serve_with_daphne,
    "uvicorn": serve_with_uvicorn,
    "granian": serve_with_granian,
    "gunicorn": serve_with_gunicorn,
}
