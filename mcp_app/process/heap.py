"""What a process begins with is left out of garbage collections.

Requests that wait a moment make Python look at all objects every few seconds.  With
Django, a site and its catalogs that held the loop for 90 ms each time (measured with
256 connections that show unknown session ids).
"""

from __future__ import annotations

import gc

_is_frozen = False


def freeze_heap() -> None:
    """Leave all objects that there are out of collections, once in a process.

    They still go when nothing refers to them, unless they refer to each other.
    """
    global _is_frozen  # noqa: PLW0603 - there is one heap
    if not _is_frozen:
        _is_frozen = True
        gc.freeze()
