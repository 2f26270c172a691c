"""stdio: newline-delimited messages on standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress
from typing import Final

from mcp_app.interface.principal import Principal
from mcp_app.process.current import begin_process
from mcp_app.protocol.errors import SwitchedOff
from mcp_app.protocol.framing import Lines
from mcp_app.server.run import End
from mcp_app.transports.stdio.connection import Connection, NotServed
from mcp_app.transports.stdio.pipes import Input, Output

GRACE_S: Final = 1.0
"""Seconds for running calls after the client's last message."""
EXIT_S: Final = 1.8
"""Seconds that the whole end may take; then the process exits."""
LAST_WRITES_S: Final = 0.2
"""Seconds for writing what is queued when the last call has ended."""
HANG_UP: Final = getattr(signal, "SIGHUP", signal.SIGTERM)
"""The signal of a terminal that goes away; only POSIX has it."""
MESSAGE_BATCH_SIZE: Final = 32
"""Messages that are taken before their tasks may run."""


async def serve_client(
    slug: str, principal: Principal, incoming: int, outgoing: int
) -> None:
    """Serve one client on these descriptors until it leaves, or a signal comes.

    Raises `NotServed` if the server is not for this caller, and `Unavailable`
    if the database cannot be reached at the start.
    """
    current, stopped = begin_process(), asyncio.Event()
    # Its own tasks end with the process; it claims no tasks of other processes.
    current.tasks.offer_places(current.limits.tasks_per_person, claims=False)
    stop_at_signals(stopped)
    try:
        output = Output(outgoing, stopped.set)
        connection = Connection(current, slug, principal, output.write_message)
        connection.count_waiting = output.count_waiting
        await current.gate.wait_until_fresh(time.monotonic())
        await _check_served(connection)
        taking = asyncio.create_task(_take_lines(connection, incoming))
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
        leave_within(EXIT_S)
        # A task that is done cannot be cancelled: then the input has ended.
        has_left = not taking.cancel()
        if has_left:
            connection.cancel_subscriptions()
        await current.drain(GRACE_S, End.CLIENT_GONE if has_left else End.SHUT_DOWN)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITES_S):
                await output.wait_until_written()
    finally:
        current.close()


async def _check_served(connection: Connection) -> None:
    try:
        await connection.find_caller()
    except SwitchedOff:
        # Each message gets this error until the server is switched on again.
        return
    except NotServed:
        # Leave at once: other processes must not wait for this one.
        await connection.current.drain(0)
        raise


def stop_at_signals(stopped: asyncio.Event) -> None:
    """Set the event when the process is told to end."""
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    # A process that is to outlive its terminal (nohup) ignores this signal.
    if signal.getsignal(HANG_UP) is signal.SIG_DFL and HANG_UP not in numbers:
        numbers.append(HANG_UP)
    # Without POSIX, signals end the process as usual.
    with suppress(NotImplementedError):
        for number in numbers:
            loop.add_signal_handler(number, stopped.set)


def leave_within(seconds: float) -> None:
    """Let the process end within this time, whatever its threads do."""
    timer = threading.Timer(seconds, os._exit, [0])
    timer.daemon = True
    timer.start()


async def _take_lines(connection: Connection, incoming: int) -> None:
    lines = Lines(connection.current.limits.body)
    source = Input(incoming, lambda: leave_within(EXIT_S))
    data, line_count = b"more", 0
    while data:
        data, arrived = await source.next_chunk()
        for line in lines.feed(data) if data else lines.end():
            await connection.take_line(line, arrived)
            line_count += 1
            if line_count % MESSAGE_BATCH_SIZE == 0:
                await asyncio.sleep(0)
