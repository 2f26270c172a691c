"""Context managers for `MCP["CALL_CONTEXT_MANAGERS"]`; they note what they see."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcp_app import Principal

told: list[tuple[Any, ...]] = []
tenant: ContextVar[str] = ContextVar("tenant", default="nobody's")


@contextmanager
def noting(
    *, host: str, path: str, principal: Principal, **more: Any
) -> Iterator[None]:
    """Note who comes, where, and how it ends."""
    told.append(("enters", host, path, principal.kind, threading.current_thread().name))
    told.append(("given", str(more["user"]), dict(more["headers"])))
    try:
        yield
    except BaseException as error:
        told.append(("leaves", type(error).__name__))
        raise
    told.append(("leaves", None))


@contextmanager
def of_tenant(*, host: str, **_: object) -> Iterator[None]:
    """Set a context variable, and nothing else: fit for the loop."""
    token = tenant.set(host)
    try:
        yield
    finally:
        tenant.reset(token)


of_tenant.context_variables_only = True  # type: ignore[attr-defined]


def refusing(**_: object) -> Refusing:
    """Let nobody in."""
    return Refusing()


class Refusing:
    def __enter__(self) -> None:
        raise PermissionError("This tenant is closed.")

    def __exit__(self, *_: object) -> None:
        raise AssertionError("It was never entered.")
