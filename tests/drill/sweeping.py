"""A part of the site that sweeps: it lets sessions grow old, and removes what is.

Each line of its input is the id of a session.  The row is made as old as if nobody had
used it since 1970, and everything that has expired is swept away.  For each it writes a
line when every process knows of it: how many sessions have that id.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Final

import django

ATTEMPTS: Final = 10
"""A process where a call of the session runs may say in between that it is used."""


def main() -> None:
    """Return when the input ends."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
    django.setup()
    for line in sys.stdin:
        left = asyncio.run(_swept(line.strip()))
        sys.stdout.write(f"{left}\n")
        sys.stdout.flush()


async def _swept(session_id: str) -> int:
    # They import models, which are there now.
    from mcp_app.conf import Limits  # noqa: PLC0415
    from mcp_app.invalidation.workers import FRESHNESS  # noqa: PLC0415
    from mcp_app.models import Session  # noqa: PLC0415
    from mcp_app.pools.database import writer  # noqa: PLC0415
    from mcp_app.process.janitor import Janitor  # noqa: PLC0415

    own = Session.objects.named(session_id)
    janitor = Janitor(asyncio.get_running_loop(), Limits(), _never)
    for _ in range(ATTEMPTS):
        await writer.run(own.update, seen_ms=0)
        await janitor.sweep()
        if not await writer.run(own.count):
            break
    janitor.stop()
    await asyncio.sleep(FRESHNESS)
    return await writer.run(own.count)


def _never(_work: Awaitable[None]) -> None:
    """It sweeps when it is told to, not as time passes."""


if __name__ == "__main__":
    main()
