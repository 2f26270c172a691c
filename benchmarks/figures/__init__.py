"""Every figure, by the name that `--only` chooses from, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.figures import (
    call_log,
    calls,
    guarded,
    instructions,
    latency,
    lists,
    log,
    statements,
    stdio,
    streams,
)
from benchmarks.measuring import Figure

FIGURES: Mapping[str, Figure] = {
    "control": calls.control,
    "calls": calls.on_uvicorn,
    "audit": calls.audited,
    "guarded": guarded.of_token_calls,
    "instructions": instructions.of_calls,
    "latency": latency.at_a_steady_rate,
    "mcpz": calls.beside_django_mcpz,
    "daphne": calls.on_daphne,
    "programs": calls.of_server_programs,
    "wsgi": calls.by_wsgi,
    "wsgi-look-up": calls.by_wsgi_with_a_look_up,
    "catalog": calls.with_many_tools,
    "lists": lists.of_100_tools,
    "call-log": call_log.of_1_000_000,
    "streams": streams.standing_open,
    "statements": statements.by_rate,
    "log": log.of_calls,
    "stdio": stdio.on_pipes,
}
