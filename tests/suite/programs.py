"""How many programs this process has started, by an audit hook.

The number is the same on each machine, but for what is started once for all tests:
which of them comes first is chance, and it is not counted.  Nor is what
`multiprocessing` spawns: it raises no event.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

STARTING: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
)

_number = 0
_is_for_all: ContextVar[bool] = ContextVar("_is_for_all", default=False)


def begin_to_count() -> None:
    """Count from now on; an audit hook stays as long as the process."""
    sys.addaudithook(_count)


def started() -> int:
    """Return the number of programs so far."""
    return _number


@contextmanager
def starting_for_all() -> Iterator[None]:
    """Do not count what is started here."""
    token = _is_for_all.set(True)
    try:
        yield
    finally:
        _is_for_all.reset(token)


def _count(event: str, _arguments: tuple[Any, ...]) -> None:
    global _number  # noqa: PLW0603 - an audit hook has no object
    if event in STARTING and not _is_for_all.get():
        _number += 1
