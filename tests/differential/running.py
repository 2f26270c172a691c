"""Serves the twin for the long form, which is no test."""

from __future__ import annotations

from django.core.handlers.asgi import ASGIHandler

import mcp_app.asgi
from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process import current as current_process
from mcp_app.process import runtime
from tests.differential.comparing import Comparison, compared
from tests.differential.generating import exchanges
from tests.differential.twins import SLUG, TAG, ours
from tests.published import published
from tests.wire.middleware import WireCheck


def publish() -> None:
    """Write the row of the server that offers the twins."""
    published(Server(slug=SLUG, access="public", selection="tags", tags=TAG))


async def served(count: int, seed: int) -> tuple[Comparison, list[str]]:
    """Compare so many exchanges; return that, and what was wrong with our messages."""
    await writer.run(publish)
    current_process._current = current = runtime.Process(ours())
    check = WireCheck(mcp_app.asgi.application(ASGIHandler()))
    try:
        return await compared(check, exchanges(seed, count)), check.violations
    finally:
        await current.drain(0)
        current.close()
