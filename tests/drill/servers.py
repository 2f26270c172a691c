"""The ASGI servers that the fixture set runs on, each in this one process."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

import daphne.server
import uvicorn
from granian.constants import Interfaces
from granian.server.embed import Server as GranianServer

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


SERVERS: Final[Mapping[str, Callable[[Any, socket.socket], None]]] = {
    "daphne": serve_with_daphne,
    "uvicorn": serve_with_uvicorn,
    "granian": serve_with_granian,
}
