"""What a server does at this moment, told when it gets a signal: where a test hangs."""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys
from types import FrameType
from typing import Final

TELL: Final = signal.SIGUSR1
END: Final = "These were the tasks."


def tell_when_asked() -> None:
    """Write the stacks of all threads at the signal, and of all tasks once it runs."""
    signal.signal(TELL, _tell)
    faulthandler.register(TELL, all_threads=True, chain=True)


def _tell(_signal: int, _frame: FrameType | None) -> None:
    try:
        for task in asyncio.all_tasks():
            task.print_stack(file=sys.stderr)
    except RuntimeError:
        sys.stderr.write("No loop runs.\n")
    sys.stderr.write(f"{END}\n")
    sys.stderr.flush()
