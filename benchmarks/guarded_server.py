"""A server that lets nobody in without a token, and who calls it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.client import WrongAnswerError, send
from benchmarks.messages import Request, call
from benchmarks.processes import Process, run_module


def guard_server(
    server: Process, url: str, settings: Mapping[str, str] | None = None
) -> dict[str, Request]:
    """Let nobody in without a token; return the call by a "token".

    And by the "key" of a program, if the settings, which are those of
    `servers.drill(sign_in=True)`, let programs sign in.
    """
    environment = {"DATABASE_URL": url, **(settings or {})}
    shown: dict[str, str] = run_module("benchmarks.guarding", environment)
    request = call("drill_add")
    if (reply := send(server.port, request)).status != 401:
        raise WrongAnswerError(f"Without a token: HTTP {reply.status}.")
    return {name: request.with_token(token) for name, token in shown.items() if token}
