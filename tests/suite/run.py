"""A run of the suite: its parts beside each other, and nothing left of them."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.suite import records, yardstick
from tests.suite.owners import SHARED, owned_name, shared_folder
from tests.suite.parts import Lane, Part, Stages
from tests.suite.processes import (
    LOOK_S,
    RUN,
    Programs,
    adopt_orphans,
    end_programs_of_killed_runs,
)
from tests.suite.records import Record
from tests.suite.rooms import ROOT
from tests.suite.sweeping import sweep

RESULTS: Final = ROOT / "results"
NEWS_S: Final = 30.0


@dataclass(slots=True)
class PartRun:
    """A part that was started, and what it came to; seconds are of this machine."""

    part: Part
    output: Path
    records: Path
    began: float
    wall: float = 0.0
    processor: float = 0.0
    status: int | None = None

    @property
    def tests(self) -> list[Record]:
        """The tests that have ended."""
        return records.read(self.records)[1]

    @property
    def failed(self) -> list[Record]:
        """The tests that have failed."""
        return [each for each in self.tests if each.outcome == "failed"]


class Run:
    """Runs parts; whatever they have started ends with it.

    A context manager.  Programs get a folder of their own for temporary files, which
    goes, too.
    """

    def __init__(self) -> None:
        self.parts: list[PartRun] = []
        self.orphans = 0.0
        """Processor seconds of programs that lost the program that had started them."""
        self.units: list[float] = []
        """What the yardstick measured at the start, in the middle and at the end."""
        self._samples: list[float] = []
        """The same while tests run: from one moment to the next it varies by half."""
        self._programs = Programs()
        self._told = time.monotonic()
        name, shared = owned_name(), shared_folder()
        self._folder = shared / name
        self.environment = {
            **os.environ,
            RUN: name,
            SHARED: str(shared),
            "TMPDIR": str(self._folder),
        }

    def __enter__(self) -> Run:
        adopt_orphans()
        end_programs_of_killed_runs()
        sweep()
        self._be_alone()
        for old in (*RESULTS.glob("part-*.txt"), *RESULTS.glob("records-*.jsonl")):
            old.unlink()
        shutil.rmtree(RESULTS / "secrecy", ignore_errors=True)
        self._folder.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_programs()
        shutil.rmtree(self._folder, ignore_errors=True)
        sweep()
        self._alone.close()

    def _be_alone(self) -> None:
        """Take the folder of results; it is free again when this process has ended."""
        RESULTS.mkdir(exist_ok=True)
        self._alone = (RESULTS / "lock").open("w")
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._alone.close()
            raise SystemExit(
                f"Another run of the suite writes to {RESULTS}."
                " Wait for its end, or use another checkout."
            ) from None

    @property
    def unit(self) -> float:
        """What processor seconds are divided by."""
        return sum(self.units) / len(self.units)

    @property
    def tests(self) -> list[Record]:
        """The tests that have ended, of all parts."""
        return [each for part in self.parts for each in part.tests]

    def measure_unit(self) -> None:
        """Measure at the start, or at the end, once the middle is known."""
        if self._samples:
            self.units.append(sum(self._samples) / len(self._samples))
            self._samples = []
        self.units.append(yardstick.measure())

    def end_programs(self) -> None:
        """End what is left of the programs that were started."""
        self.orphans += self._programs.end()

    def of(self, stages: Stages) -> None:
        """Run all parts, print what they write, and measure the machine meanwhile."""
        self.measure_unit()
        for lanes in stages:
            self._run(lanes)

    def _run(self, lanes: tuple[Lane, ...]) -> None:
        running: dict[int, tuple[PartRun, Iterator[Part]]] = {}
        for lane in map(iter, lanes):
            self._start_next(lane, running)
        while running:
            self._tell([part for part, _ in running.values()])
            ended = self._programs.ended()
            if ended is None:
                time.sleep(LOOK_S)
            elif ended.pid in running:
                part, lane = running.pop(ended.pid)
                part.wall = time.monotonic() - part.began
                part.processor, part.status = ended.processor, ended.status
                _print_output(part)
                self._start_next(lane, running)
            else:
                self.orphans += ended.processor

    def _start_next(
        self,
        lane: Iterator[Part],
        running: dict[int, tuple[PartRun, Iterator[Part]]],
    ) -> None:
        for part in lane:
            at = len(self.parts)
            output = RESULTS / f"part-{at}.txt"
            begun = PartRun(
                part, output, RESULTS / f"records-{at}.jsonl", time.monotonic()
            )
            self.parts.append(begun)
            environment = {**self.environment, **part.environment}
            if part.has_tests:
                environment[records.VARIABLE] = str(begun.records)
            pid = self._programs.start(part.command, environment, output)
            running[pid] = begun, lane
            return

    def _tell(self, running: list[PartRun]) -> None:
        """Say every now and then how far the tests are; measure the machine, too."""
        if time.monotonic() < self._told + NEWS_S:
            return
        self._told = time.monotonic()
        self._samples.append(yardstick.measure(yardstick.SAMPLE))
        for part in running:
            number, ended = records.read(part.records)
            if not number:
                continue
            failed = Counter(each.outcome for each in ended)["failed"]
            say(f"   {part.part.name}: {len(ended)} of {number}, {failed} failed")


def _print_output(part: PartRun) -> None:
    say(f"\n== {part.part.name}")
    say(part.output.read_text(encoding="utf-8", errors="replace").rstrip())


def say(line: str) -> None:
    """Write a line at once: what runs beside writes, too."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
