"""A server that lets nobody in without a token, and who calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

from benchmarks.client import WrongAnswerError, send
from benchmarks.messages import Request, call
from benchmarks.processes import ROOT, Process, ServerFailedError

UNAUTHORIZED = 401


def guarded_call(server: Process, url: str) -> Request:
    """Let nobody in without a token, and return the call of who has one."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.guarding"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise ServerFailedError(ended.stderr)
    token = json.loads(ended.stdout.splitlines()[-1])["token"]
    request = call("drill_add")
    if (reply := send(server.port, request)).status != UNAUTHORIZED:
        raise WrongAnswerError(f"Without a token: HTTP {reply.status}.")
    headers = {**request.headers, "Authorization": f"Bearer {token}"}
    own: Request = replace(request, headers=headers)
    return own
