"""A part of the site that serves no requests: it saves ledger lines, when asked.

Each line of its input is a JSON array: the ledger line's key, who writes it, and for
how many seconds the transaction stays open after the save.  For each it writes one:
the key, "saved" or "committed", and how many deadlocks there were before.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import django
from django.db import OperationalError, transaction

THREADS: Final = 16
DEADLOCKS: Final = ("deadlock", "Deadlock")


def main() -> None:
    """Return when the input ends and everything is committed."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
    django.setup()
    if faults := os.environ.get("FAULTS"):
        # It imports models, which are there now.
        from tests.drill.faults import plant  # noqa: PLC0415

        plant(faults)
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            pool.submit(_write, *json.loads(line))


_lock = threading.Lock()


def _say(key: str, error: str, deadlocks: int) -> None:
    with _lock:
        sys.stdout.write(f"{json.dumps([key, error, deadlocks])}\n")
        sys.stdout.flush()


def _write(key: str, worker: str, seconds: float) -> None:
    deadlocks = 0
    try:
        while not _saved(key, worker, seconds):
            deadlocks += 1
        _say(key, "", deadlocks)
    except Exception as error:
        # A pool would keep it to itself.
        _say(key, repr(error), deadlocks)
        raise


def _saved(key: str, worker: str, seconds: float) -> bool:
    """Save a line in a transaction that lasts; return False for a deadlock."""
    from tests.drill.models import Ledger  # noqa: PLC0415

    try:
        with transaction.atomic():
            line = Ledger.objects.get(key=key)
            line.worker = worker
            line.save()
            time.sleep(seconds)
    except OperationalError as error:
        if any(each in str(error) for each in DEADLOCKS):
            return False
        raise
    return True


if __name__ == "__main__":
    main()
