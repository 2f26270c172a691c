"""Every figure, by the name that `--only` chooses from, in the order of the table."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.figures import (
    call_log,
    calls,
    definitions,
    documents,
    egress,
    floods,
    guarded,
    home,
    instructions,
    latency,
    leaks,
    lists,
    log,
    nonsense,
    questions,
    rates,
    slow,
    statements,
    stdio,
    streams,
    threads,
    workers,
)
from benchmarks.measuring import Figure

FIGURES: Mapping[str, Figure] = {
    "control": calls.control,
    "calls": calls.on_uvicorn,
    "audit": calls.audited,
    "guarded": guarded.by_token,
    "instructions": instructions.of_calls,
    "latency": latency.at_a_steady_rate,
    "mcpz": calls.beside_django_mcpz,
    "daphne": calls.on_daphne,
    "programs": calls.of_server_programs,
    "workers": workers.of_two,
    "wsgi": calls.by_wsgi,
    "catalog": calls.with_many_tools,
    "lists": lists.of_100_tools,
    "definitions": definitions.of_10_000,
    "call-log": call_log.of_1_000_000,
    "home": home.of_1_000_000_calls,
    "streams": streams.standing_open,
    "statements": statements.by_rate,
    "log": log.of_calls,
    "threads": threads.asleep,
    "questions": questions.left_open,
    "leaks": leaks.left_behind,
    "stdio": stdio.on_pipes,
    "floods": floods.of_strangers,
    "rates": rates.of_people,
    "slow": slow.of_slow_clients,
    "nonsense": nonsense.of_large_bodies,
    "egress": egress.of_other_sites,
    "documents": documents.of_other_people,
    "search": documents.of_questions,
}
