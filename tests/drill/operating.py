"""A part of the site that serves no requests: it does what it is asked to.

To start a program for each command would take most of a test's time.  A line of its
input is the JSON of a list: a number, what to do, and with what.  When it is done it is
answered by one: the number, what was wrong, and the result.  Several go on at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from threading import Lock
from typing import Any, Final

import django
from django.core.management import call_command
from django.db import OperationalError, transaction

ATTEMPTS: Final = 10
"""A process where a call of the session runs may say in between that it is used."""


def main() -> None:
    django.setup()
    if faults := os.environ.get("FAULTS"):
        # It imports models, which are there now.
        from tests.drill.faults import plant  # noqa: PLC0415

        plant(faults)
    with ThreadPoolExecutor(16) as pool:
        for line in sys.stdin:
            pool.submit(_do, *json.loads(line))


def _do(number: int, what: str, *given: Any) -> None:
    error, result = "", None
    try:
        result = DOES[what](*given)
    # A pool would keep it to itself.
    except Exception as wrong:
        error = repr(wrong)
    with _saying:
        sys.stdout.write(f"{json.dumps([number, error, result])}\n")
        sys.stdout.flush()


_saying: Final = Lock()


def _run(*command: str) -> str:
    written, beside = StringIO(), StringIO()
    call_command(*command, stdout=written, stderr=beside)
    return written.getvalue().strip()


def _write(key: str, worker: str, seconds: float) -> int:
    """Save a ledger line in a transaction that lasts; return how many deadlocked."""
    from tests.drill.models import Ledger  # noqa: PLC0415

    deadlocks = 0
    while True:
        try:
            with transaction.atomic():
                line = Ledger.objects.get(key=key)
                line.worker = worker
                line.save()
                time.sleep(seconds)
            return deadlocks
        except OperationalError as error:
            if "deadlock" not in str(error).lower():
                raise
            deadlocks += 1


def _sweep(session_id: str) -> int:
    """Let nobody have used a session since 1970, and sweep.

    Return how many sessions have that id when every process knows of it.
    """
    with _sweeping:
        return asyncio.run(_swept(session_id))


_sweeping: Final = Lock()


async def _swept(session_id: str) -> int:
    # They import models, which are there now.
    from mcp_app.conf import Limits  # noqa: PLC0415
    from mcp_app.invalidation.workers import FRESHNESS  # noqa: PLC0415
    from mcp_app.models import Session  # noqa: PLC0415
    from mcp_app.pools.database import writer  # noqa: PLC0415
    from mcp_app.process.janitor import Janitor  # noqa: PLC0415

    own = Session.objects.named(session_id)
    # It sweeps when it is told to, not as time passes.
    janitor = Janitor(asyncio.get_running_loop(), Limits(), lambda _: None)
    for _ in range(ATTEMPTS):
        await writer.run(own.update, seen_ms=0)
        await janitor.remove_expired()
        if not await writer.run(own.count):
            break
    janitor.stop()
    await asyncio.sleep(FRESHNESS)
    return await writer.run(own.count)


DOES: Final[Mapping[str, Callable[..., Any]]] = {
    "run": _run,
    "write": _write,
    "sweep": _sweep,
}


if __name__ == "__main__":
    main()
