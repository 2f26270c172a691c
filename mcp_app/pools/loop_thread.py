"""The thread in which asgiref runs sync code for everything on the loop.

Async user code has its statements there, one at a time; so has the site's code that
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
    """Let a function run there after all that waits there now."""
    SyncToAsync.single_thread_executor.submit(function)


def close_cut() -> None:
    """Close its connections that were cut, before a call has to find out.

    Nobody else looks after them: all calls on the loop share them.
    """
    submit(partial(_close_unusable, _is_open))


def close_broken() -> None:
    """Close those on which an error has left nothing that can be used."""
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
    """A fork has no such thread, and the executor of its parent would wait for it."""
    SyncToAsync.single_thread_executor = ThreadPoolExecutor(max_workers=1)


os.register_at_fork(after_in_child=_begin)
