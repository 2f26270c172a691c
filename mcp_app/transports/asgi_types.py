"""Types of ASGI, and what else several transports need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders: TypeAlias = list[tuple[bytes, bytes]]


def path_below_root(root: str, path: str) -> str:
    """Return a path without the root path, which some servers leave in it."""
    prefix = root.rstrip("/")
    return path[len(prefix) :] if path.startswith(prefix + "/") else path


APART_S: Final = 0.005
"""Seconds between a notification and the answer: the TypeScript SDK reorders messages
that it reads together, and then no longer knows the progress token."""
