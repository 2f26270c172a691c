"""From a view's thread to the loop that serves."""

from __future__ import annotations

import asyncio
import threading

from asgiref.sync import sync_to_async
from django.test import AsyncRequestFactory, RequestFactory

from mcp_app.workbench.viewer import run_on_loop


async def _where() -> tuple[asyncio.AbstractEventLoop, str]:
    return asyncio.get_running_loop(), threading.current_thread().name


async def test_under_asgi_it_is_the_server_s() -> None:
    request = AsyncRequestFactory().get("/")
    loop, _name = await sync_to_async(run_on_loop)(request, _where)
    assert loop is asyncio.get_running_loop()


def test_under_wsgi_it_is_the_one_beside_it() -> None:
    request = RequestFactory().get("/")
    _loop, name = run_on_loop(request, _where)
    assert name == "mcp-loop"
