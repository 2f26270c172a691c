"""Run tasks, and deliver events, apart from the processes that serve."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from mcp_app.conf import MAX_SECONDS, mcp_settings
from mcp_app.egress.callbacks import event_settings
from mcp_app.process.current import begin_process
from mcp_app.protocol.errors import Unavailable
from mcp_app.server.run import End
from mcp_app.transports.stdio.server import stop_at_signals

LOOK_S: Final = 1.0
"""How often an idle worker looks for tasks that wait."""
RETRY_S: Final = 5.0
"""How long it waits if the database is away."""
NOT_WANTED: Final = (
    'MCP["TASKS"] is {value!r}: others run the tasks. Set it to "worker", and restart'
    ' the processes that serve. To deliver events here, set MCP["EVENTS"]["deliver"]'
    ' to "worker".'
)


class Command(BaseCommand):
    help = (
        'Runs tasks, if MCP["TASKS"] is "worker", and delivers events, if'
        ' MCP["EVENTS"]["deliver"] is "worker", until it gets SIGTERM or SIGINT. Then'
        " those that run have their time, and no other begins; a second one ends them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--places",
            type=int,
            default=4,
            help=(
                "how many tasks run at the same time, at most THREADS (default: 4); 0"
                " where it only delivers events"
            ),
        )
        parser.add_argument(
            "--patience",
            type=float,
            default=3_600.0,
            help="seconds for running tasks after the signal (default: 3600)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        runs_tasks = mcp_settings.tasks == "worker"
        delivers = event_settings().deliver == "worker"
        if not runs_tasks and not delivers:
            raise CommandError(NOT_WANTED.format(value=mcp_settings.tasks))
        patience = options["patience"]
        if not 0 <= patience <= MAX_SECONDS:
            raise CommandError(f"--patience is {patience:g}: it must be 0 or more.")
        places, highest = options["places"], mcp_settings.threads
        lowest = 0 if delivers else 1
        if not lowest <= places <= highest:
            message = f"--places is {places}: it must be from {lowest} to {highest}."
            raise CommandError(message)
        connections.close_all()
        places = places if runs_tasks else 0
        if places:
            self.stdout.write(f"Runs {places} tasks at the same time.")
        if delivers:
            self.stdout.write("Delivers events.")
        asyncio.run(run_tasks(places, patience, self.stdout.write, delivers=delivers))


async def run_tasks(
    places: int, patience: float, say: Callable[[str], object], *, delivers: bool
) -> None:
    """Run tasks until a signal comes; then they have `patience` seconds to end."""
    current, stopped = begin_process(), asyncio.Event()
    stop_at_signals(stopped)
    current.tasks.offer_places(places)
    if delivers:
        current.event_delivery.offer()
    try:
        while not stopped.is_set():
            pause = LOOK_S
            try:
                # It loads the catalogs, and writes the row of this process.
                await current.gate.wait_until_fresh(time.monotonic())
                current.tasks.claim_soon()
            except Unavailable:
                pause = RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stopped.wait()
        if count := len(current.tasks):
            say(f"Waits for {count} running tasks, {patience:g} seconds at most.")
        # From now on it is set by a second signal.
        stopped.clear()
        drain = asyncio.create_task(current.drain(patience))
        second_signal = asyncio.create_task(stopped.wait())
        await asyncio.wait([drain, second_signal], return_when=asyncio.FIRST_COMPLETED)
        second_signal.cancel()
        for run in current.running:
            # After a second signal the tasks have no more time.
            run.stop(End.SHUT_DOWN)
        await drain
    finally:
        current.close()
