"""An operator, who lets a program of the site do one thing and another."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cached_property
from threading import Lock, Thread
from typing import Any, Final

from tests.drill.programs import Program
from tests.process.clusters import python_environment

SHOWN: Final = 10
"""Characters of a token by which a command names it."""


class Operator:
    """A part of the site that serves no requests; whoever makes one closes it.

    It is started when it is asked for something.  Threads may share it.
    """

    def __init__(self, environment: Mapping[str, str], *, faulty: bool = False) -> None:
        # Where somebody serves, faults are the servers' alone.
        given = {k: v for k, v in environment.items() if faulty or k != "FAULTS"}
        self._environment = python_environment(given)
        self._lock = Lock()
        self._answers: list[Future[Any]] = []
        self._reader = Thread(target=self._read, daemon=True)

    @cached_property
    def _program(self) -> Program:
        command = [sys.executable, "-m", "tests.drill.operating"]
        return Program(command, env=self._environment, pipes=True)

    def asks(self, what: str, *given: object) -> Future[Any]:
        answer = Future[Any]()
        with self._lock:
            self._program.say(json.dumps([len(self._answers), what, *given]))
            self._answers.append(answer)
            if not self._reader.ident:
                self._reader.start()
        return answer

    def _read(self) -> None:
        while line := self._program.hear():
            number, error, result = json.loads(line)
            with self._lock:
                answer = self._answers[number]
            if error:
                answer.set_exception(AssertionError(error))
            else:
                answer.set_result(result)
        with self._lock:
            for answer in self._answers:
                if not answer.done():
                    answer.set_exception(AssertionError(self._program.output))

    def types(self, *command: str) -> str:
        return str(self.asks("run", *command).result())

    def runs(self, code: str) -> None:
        self.types("shell", "--verbosity", "0", "--command", code)

    def token(self, user: str, name: str, *options: str) -> str:
        return self.types("mcp_token", "new", user, name, *options)

    def revokes(self, token: str) -> None:
        self.types("mcp_token", "revoke", token[:SHOWN])

    def saves(self, key: str, worker: str, seconds: float) -> Future[int]:
        """Save a ledger line in a transaction that stays open for a while.

        When it is committed, the result is how many deadlocks there were before.
        """
        return self.asks("write", key, worker, seconds)

    def sweeps(self, session_id: str) -> None:
        """Return when a session has expired, and every process knows it."""
        assert self.asks("sweep", session_id).result() == 0

    def close(self) -> None:
        if self._reader.ident:
            self._program.close_input()
            self._reader.join()
            assert self._program.wait() == 0, self._program.output
