"""The thread in which asgiref runs sync code for everything on the loop.

It executes the statements of async user code, one at a time, and the site's code that
runs outside a request.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from asgiref.sync import SyncToAsync
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def submit(function: Callable[[], object]) -> None:
    """Run a function in that thread, after everything that is queued there."""
    SyncToAsync.single_thread_executor.submit(function)


def close_cut() -> None:
    """Close its broken connections before a call meets one.

    Nobody else does, because all calls on the loop share them.
    """
    submit(partial(_close_unusable, _is_open))


def close_broken() -> None:
    """Close the connections that an error has left unusable."""
    submit(partial(_close_unusable, _has_met_errors))


def _is_open(connection: BaseDatabaseWrapper) -> bool:
    return connection.connection is not None


def _has_met_errors(connection: BaseDatabaseWrapper) -> bool:
    return connection.errors_occurred


def _close_unusable(suspect: Callable[[BaseDatabaseWrapper], bool]) -> None:
    for each in connections.all(initialized_only=True):
        if suspect(each) and not each.in_atomic_block and not each.is_usable():
            each.close()


def _begin() -> None:
    """Replace the executor in a forked child: its thread exists only in the parent."""
    SyncToAsync.single_thread_executor = ThreadPoolExecutor(max_workers=1)


os.register_at_fork(after_in_child=_begin)
