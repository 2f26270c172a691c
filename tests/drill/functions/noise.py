"""Tools that write where messages go on stdio, and one that never ends."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final

from mcp_app import mcp

STDIN, STDOUT = 0, 1
LINE: Final = "x" * 1_023


def _by_print(text: str) -> None:
    print(text)  # noqa: T201 - what user code does


def _by_descriptor(text: str) -> None:
    left = text.encode()
    while left:
        left = left[os.write(STDOUT, left) :]


def _by_c(text: str) -> None:
    library = ctypes.CDLL(None)
    library.puts(text.encode())
    library.fflush(None)


def _by_child(text: str) -> None:
    program = "import sys; sys.stdout.write(sys.stdin.read())"
    subprocess.run([sys.executable, "-c", program], input=text, text=True, check=True)


def _by_logging(text: str) -> None:
    logger = logging.getLogger("noise")
    handler = logging.StreamHandler(sys.stdout)
    logger.addHandler(handler)
    logger.warning(text)
    logger.removeHandler(handler)


WAYS: Final[Mapping[str, Callable[[str], None]]] = {
    "print": _by_print,
    "descriptor": _by_descriptor,
    "c": _by_c,
    "child": _by_child,
    "logging": _by_logging,
}


print("Tools that are loud as soon as they are there.", flush=True)  # noqa: T201


@mcp.tool
def noise_print(way: str, lines: int) -> int:
    """Write so many KiB to standard output; return what is read from the input."""
    WAYS[way]("\n".join([LINE] * lines))
    return len(os.read(STDIN, 1))


@mcp.tool
async def noise_print_on_loop(lines: int) -> str:
    _by_print("\n".join([LINE] * lines))
    return "printed"


@mcp.tool
def noise_hang() -> str:
    """Wait for what never comes, and look at nothing meanwhile."""
    threading.Event().wait()
    return "never"


@mcp.tool
def noise_thread() -> str:
    """Leave a thread behind that keeps a process from ending by itself."""
    threading.Thread(target=threading.Event().wait).start()
    return "left"
