"""The fixture set under uvicorn, with caches that stay fresh from SIGUSR1 on.

`benchmarks.server_instructions` counts what this process executes.  A check of the
database would be counted with the calls, and more of them under valgrind, which makes
time short.
"""

from __future__ import annotations

import math
import os
import signal
from typing import Any

import django
import uvicorn


def main() -> None:
    """Prepare the database and serve at PORT."""
    django.setup()
    from mcp_app.asgi import application  # noqa: PLC0415 - after Django's setup
    from mcp_app.process import running  # noqa: PLC0415
    from mcp_app.transports.http import plain_call, request_handler  # noqa: PLC0415
    from tests.drill.preparing import prepare  # noqa: PLC0415

    prepare()
    # Under valgrind each call takes longer than that.
    running.LASTING_AFTER = 60.0
    for module in (plain_call, request_handler):
        vars(module)["AT_ONCE_S"] = 60.0
    signal.signal(signal.SIGUSR1, _pin)
    uvicorn.run(
        application(_nobody),
        port=int(os.environ["PORT"]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
        lifespan="off",
    )


def _pin(*_: object) -> None:
    """Let the caches count as fresh."""
    from mcp_app.process.current import process  # noqa: PLC0415

    gate = process().gate
    gate._quiet_until = gate._fresh_until = math.inf


async def _nobody(*_: Any) -> None:
    raise RuntimeError("No path of this benchmark is the site's.")


if __name__ == "__main__":
    main()
