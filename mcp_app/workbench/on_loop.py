"""From the thread of a view to the loop of the process that serves."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from mcp_app.process.background import background

Value = TypeVar("Value")


def on_loop(
    request: HttpRequest, function: Callable[[], Coroutine[Any, Any, Value]]
) -> Value:
    """Run a coroutine where the endpoint is served, and return its result; blocks.

    Under ASGI that is the loop of the server, under WSGI the one beside it.
    """
    if isinstance(request, ASGIRequest):
        return async_to_sync(function)()
    return background.run(function)
