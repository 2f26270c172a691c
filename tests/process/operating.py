"""An operator, who types commands of the site one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Final

from tests.drill.running import ROOT
from tests.process.clusters import python_environment

SHOWN: Final = 10
"""Characters of a token by which a command names it."""


class Operator:
    """A program of the site that runs commands; whoever makes one closes it.

    It is started for the first of them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Where somebody serves, faults are the servers' alone.
        self._given = {k: v for k, v in environment.items() if k != "FAULTS"}
        self._lock = Lock()

    @cached_property
    def _process(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.drill.operating"],
            cwd=ROOT,
            env=python_environment(self._given),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def types(self, *command: str) -> str:
        """Return what was written when the command has answered."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{json.dumps(command)}\n")
            self._process.stdin.flush()
            done, said = json.loads(self._process.stdout.readline())
        assert done, said
        return str(said)

    def runs(self, code: str) -> None:
        """Run code of the site."""
        self.types("shell", "--verbosity", "0", "--command", code)

    def token(self, user: str, name: str, *options: str) -> str:
        """Make an access token."""
        return self.types("mcp_token", "new", user, name, *options)

    def revokes(self, token: str) -> None:
        """Return when nobody is let in by a token any more."""
        self.types("mcp_token", "revoke", token[:SHOWN])

    def close(self) -> None:
        if "_process" not in vars(self):
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait() == 0
