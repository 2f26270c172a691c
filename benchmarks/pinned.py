"""The fixture set under uvicorn, with caches that stay fresh from SIGUSR1 on.

`benchmarks.server_instructions` counts what this process executes.  A check of the
database would be counted with the calls, and more of them under valgrind, which makes
time short.
"""

from __future__ import annotations

import math
import os
import signal
import sys

import django
import uvicorn

from benchmarks.instructions import refuse_all


def main() -> None:
    """Prepare the database and serve at PORT."""
    django.setup()
    from mcp_app.asgi import application  # noqa: PLC0415 - after Django's setup
    from mcp_app.audit import call_log  # noqa: PLC0415
    from mcp_app.process import running  # noqa: PLC0415
    from mcp_app.process.freshness import FreshnessGate  # noqa: PLC0415
    from mcp_app.transports.http import plain_call, request_handler  # noqa: PLC0415
    from tests.drill.preparing import prepare  # noqa: PLC0415

    prepare()
    # Under valgrind everything takes some fifty times as long: what comes by the clock
    # would come that much more often for each call.
    sys.setswitchinterval(50 * sys.getswitchinterval())
    running.LASTING_AFTER = 60.0
    for module in (plain_call, request_handler):
        vars(module)["LATE_AFTER_S"] = 60.0
    vars(call_log)["EVERY"] = 50 * call_log.EVERY
    signal.signal(signal.SIGUSR1, _pin)
    reckon = FreshnessGate._reckon

    def pinned(gate: FreshnessGate) -> None:
        reckon(gate)
        if _pinned:
            gate._quiet_until = gate._fresh_until = math.inf

    setattr(FreshnessGate, "_reckon", pinned)  # noqa: B010 - it is a method
    uvicorn.run(
        application(refuse_all),
        port=int(os.environ["PORT"]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
        lifespan="off",
    )


_pinned: list[bool] = []


def _pin(*_: object) -> None:
    """Let the caches count as fresh, whatever is checked from now on."""
    from mcp_app.process.current import process  # noqa: PLC0415

    _pinned.append(True)
    process().gate._reckon()


if __name__ == "__main__":
    main()
