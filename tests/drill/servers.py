"""The servers that the fixture set runs on.

Each serves in this one process, but gunicorn's: it forks, and workers serve.  A server
is imported where it is chosen: tests start hundreds of processes.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Final

from tests.drill.ports import HOST

# Longer than the application takes to drain.
GRACE_S: Final = 30


def serve_with_daphne(application: Any, listener: socket.socket) -> None:
    import daphne.server  # noqa: PLC0415

    listener.setblocking(False)
    daphne.server.Server(
        application, endpoints=[f"fd:fileno={listener.fileno()}"], server_name=""
    ).run()


def serve_with_uvicorn(application: Any, listener: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415

    class Quiet(uvicorn.Server):
        """Looks each second whether it is to end, and when it is told.

        uvicorn's own looks ten times, which is most of what a server does that waits,
        and tests keep two dozens of them.
        """

        _told = asyncio.Event()
        _loop: asyncio.AbstractEventLoop | None = None

        async def main_loop(self) -> None:
            self._loop = asyncio.get_running_loop()
            seconds = 0
            # It counts tenths.
            while not await self.on_tick(seconds * 10):
                seconds += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._told.wait(), 1)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._told.set)

    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
    )
    Quiet(config).run(sockets=[listener])


def serve_with_granian(application: Any, listener: socket.socket) -> None:
    port: int = listener.getsockname()[1]
    # Granian takes no socket of ours.
    listener.close()
    asyncio.run(_serve_with_granian(application, port))


async def _serve_with_granian(application: Any, port: int) -> None:
    from granian.constants import Interfaces  # noqa: PLC0415
    from granian.server.embed import Server  # noqa: PLC0415

    server = Server(
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


def serve_with_gunicorn(
    application: Any, listener: socket.socket, **options: str | int
) -> None:
    from tests.drill.preloading import Gunicorn  # noqa: PLC0415

    parent = os.getpid()
    try:
        Gunicorn(application, listener, options).run()
    except SystemExit as end:
        if os.getpid() != parent:
            # What is around this function is the parent's to clear away.
            atexit._run_exitfuncs()
            os._exit(end.code if isinstance(end.code, int) else 1)
        if end.code:
            raise


SERVERS: Final[Mapping[str, Callable[[Any, socket.socket], None]]] = {
    "daphne": serve_with_daphne,
    "uvicorn": serve_with_uvicorn,
    "granian": serve_with_granian,
    "uvicorn-worker": partial(
        serve_with_gunicorn, worker_class="uvicorn_worker.UvicornWorker"
    ),
    "gunicorn": partial(
        serve_with_gunicorn, worker_class="gthread", workers=2, threads=8
    ),
}
BY_WSGI: Final = frozenset({"gunicorn"})
BY_ASGI: Final = tuple(name for name in SERVERS if name not in BY_WSGI)
