"""An operator, who types commands of the site one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from threading import Lock
from typing import Final

from tests.drill.running import ROOT
from tests.process.clusters import python_environment

SHOWN: Final = 10
"""Characters of a token by which a command names it."""


class Operator:
    """A program of the site that runs commands; whoever makes one closes it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Where somebody serves, faults are the servers' alone.
        given = {name: value for name, value in environment.items() if name != "FAULTS"}
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.operating"],
            cwd=ROOT,
            env=python_environment(given),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def types(self, *command: str) -> str:
        """Return what was written when the command has answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(f"{json.dumps(command)}\n")
            self._process.stdin.flush()
            done, said = json.loads(self._process.stdout.readline())
        assert done, said
        return str(said)

    def token(self, user: str, name: str, *options: str) -> str:
        """Make an access token."""
        return self.types("mcp_token", "new", user, name, *options)

    def revokes(self, token: str) -> None:
        """Return when nobody is let in by a token any more."""
        self.types("mcp_token", "revoke", token[:SHOWN])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait() == 0
