"""What one round of a test has found."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Counts; where all but `asked` are 0, what is promised was kept."""

    test: str
    asked: int = 0
    """Answers that were looked at, or changes that somebody was to be told of."""
    wrong: int = 0
    """Old lists after an announcement, answers that a command had overtaken, messages
    that came twice, out of order or after a gap, calls that ran twice."""
    unanswered: int = 0
    instead: str = ""
    """What came, as a status and a body, where the first answer of them is missing."""
    untold: int = 0
    deadlocks: int = 0
    kills: int = 0
    """Processes that were killed meanwhile, with requests that ran there, or databases
    that crashed."""
    resumes: int = 0
    announced: float | None = None
    """Seconds from the request that published to the announcement."""
    ended: float | None = None
    """Seconds from the answer to a command to the end of the last stream that ended."""
    rates: dict[str, float] | None = None
    """Transactions a second, by what each does besides saving its row."""

    @property
    def kept(self) -> bool:
        return not (self.wrong or self.unanswered or self.untold or self.deadlocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """That a test was run on a kind of cluster, once or until it was cut."""

    test: str
    run: str
    """The command, and where it ran."""
    seconds: float
    load: float


_writing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Journal:
    """Rounds in a file, a line each; so a run that was cut goes on where it was."""

    path: Path

    def add(self, kind: str, found: Round | Tried) -> None:
        # Whoever goes on where nothing was cut begins.
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _writing, self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'on': kind, **asdict(found)})}\n")

    def rounds(self) -> Iterator[tuple[str, Round]]:
        for found in self._lines():
            if "run" not in found:
                yield found.pop("on"), Round(**found)

    def tries(self) -> Iterator[tuple[str, Tried]]:
        for found in self._lines():
            if "run" in found:
                yield found.pop("on"), Tried(**found)

    def count(self, kind: str, test: str) -> int:
        return sum(each.test == test for on, each in self.rounds() if on == kind)

    def forget(self, kinds: Collection[str], tests: Collection[str]) -> None:
        """Begin anew with these tests on these kinds, and keep all others."""
        kept = [
            f"{json.dumps(each)}\n"
            for each in self._lines()
            if each["on"] not in kinds or each["test"] not in tests
        ]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(kept), encoding="utf-8")

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.path.exists():
            yield from map(json.loads, self.path.read_text("utf-8").splitlines())
