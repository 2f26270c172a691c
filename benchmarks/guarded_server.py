"""A server that lets nobody in without a token, and who calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

from benchmarks.client import WrongAnswerError, send
from benchmarks.messages import Request, call
from benchmarks.processes import ROOT, Process, ServerFailedError
from benchmarks.servers import SIGN_IN

UNAUTHORIZED = 401


def guarded_call(server: Process, url: str) -> Request:
    """Let nobody in without a token, and return the call of who has one."""
    return _calls(server, url, {})["token"]


def calls_of_both(server: Process, url: str) -> dict[str, Request]:
    """Return the call by a "token" and, as programs can sign in, by the "key" of one.

    The server is one of `servers.drill(sign_in=True)`.
    """
    return _calls(server, url, SIGN_IN)


def _calls(
    server: Process, url: str, settings: Mapping[str, str]
) -> dict[str, Request]:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.guarding"],
        cwd=ROOT,
        env={**os.environ, **settings, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise ServerFailedError(ended.stderr)
    shown = json.loads(ended.stdout.splitlines()[-1])
    request = call("drill_add")
    if (reply := send(server.port, request)).status != UNAUTHORIZED:
        raise WrongAnswerError(f"Without a token: HTTP {reply.status}.")
    return {name: _by(request, bearer) for name, bearer in shown.items() if bearer}


def _by(request: Request, bearer: str) -> Request:
    headers = {**request.headers, "Authorization": f"Bearer {bearer}"}
    own: Request = replace(request, headers=headers)
    return own
