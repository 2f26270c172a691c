"""A pytest plugin: what became of each test, and what it cost.

    SUITE_RECORDS=FILE pytest -p tests.suite.records ...

FILE gets a line of JSON for the number of tests, one for each test that ended, and one
for each problem that is no test's: a module that cannot be collected, beside which the
other tests run on, and a process that ended badly after its last test, which
pytest-xdist does not tell of a worker.  Processor seconds are those of the process that
ran the test, and of all programs that it started and waited for.  Programs that tests
of several rooms share end with the last test of their process, whichever that is: what
they took is no test's.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

import pytest

from tests.suite.programs import begin_to_count, started

VARIABLE: Final = "SUITE_RECORDS"
PROPERTY: Final = "cost"
SHARED: Final = "ends what is shared"
GROUP: Final = re.compile(r"(?<=::)(.*)@[^\]@]*$", re.DOTALL)
"""A test's id behind its path, and what `--dist loadgroup` adds to it."""
TOP: Final = "tests"
"""The room of the modules that lie in no folder."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor and of the clock, and programs that were started."""

    processor: float = 0.0
    wall: float = 0.0
    programs: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.processor + other.processor,
            self.wall + other.wall,
            self.programs + other.programs,
        )

    def __sub__(self, other: Cost) -> Cost:
        return self + Cost(-other.processor, -other.wall, -other.programs)


@dataclass(frozen=True, slots=True)
class Record:
    """A test that has ended; `outcome` is passed, failed or skipped."""

    test: str
    outcome: str
    cost: Cost = field(default_factory=Cost)
    text: str = ""
    """Why it failed, or was skipped."""
    at_end: bool = False
    """Whether it failed when what it shares with others was ended, too."""

    @property
    def room(self) -> str:
        """The folder below tests/ in which it stands."""
        return room_of(self.test)


def room_of(test: str) -> str:
    """Return the folder below tests/ of a test's id, or of a file's path."""
    parts = PurePath(test.partition("::")[0]).parts
    at = parts.index("tests") if "tests" in parts else -1
    return parts[at + 1] if len(parts) > at + 2 else TOP


def read(file: Path) -> tuple[int, list[Record]]:
    """Return how many tests there were to run, and those that ended so far."""
    if not file.exists():
        return 0, []
    number, records = 0, []
    # What has no end is just being written.
    *lines, _ = file.read_text(encoding="utf-8").split("\n")
    for line in lines:
        match json.loads(line):
            case {"collected": int(number)}:
                pass
            case {
                "test": str(test),
                "outcome": str(outcome),
                "cost": cost,
                "text": text,
                "at_end": bool(at_end),
            }:
                records.append(Record(test, outcome, Cost(**cost), text, at_end))
    return number, records


def read_problems(file: Path) -> list[str]:
    """Return a sentence for each problem that is no test's."""
    if not file.exists():
        return []
    *lines, _ = file.read_text(encoding="utf-8").split("\n")
    problems = (json.loads(line).get("problem") for line in lines)
    return [sentence for sentence in problems if sentence]


def by_room(records: Iterable[Record]) -> dict[str, Cost]:
    """Return what the tests of each room cost together."""
    costs: dict[str, Cost] = {}
    for record in records:
        costs[record.room] = costs.get(record.room, Cost()) + record.cost
    return dict(sorted(costs.items()))


# -- in the process that runs the tests --------------------------------------------


def _now() -> Cost:
    times = os.times()
    processor = times.user + times.system + _programs()
    return Cost(processor, time.monotonic(), started())


def _programs() -> float:
    """Return the processor seconds of the programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system


class _Meter:
    """Gives the last report of each test what has been spent since the one before."""

    def __init__(self) -> None:
        self._before = _now()
        self._ends_shared = True
        self._is_last = False
        self._programs = 0.0

    def pytest_collection_finish(self) -> None:
        self._before = _now()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> None:
        # Of the same class or module the next one shares all that is not its own.
        self._is_last = nextitem is None
        self._ends_shared = nextitem is None or nextitem.parent is not item.parent
        self._programs = _programs()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            now = _now()
            cost = now - self._before
            if self._is_last:
                cost -= Cost(_programs() - self._programs)
            report.user_properties.append((PROPERTY, asdict(cost)))
            report.user_properties.append((SHARED, self._ends_shared))
            self._before = now
        return report


class _End:
    """Notes what fails when the tests of this process are over: nobody else does."""

    def __init__(self, file: Path, name: str) -> None:
        self._file, self._name = file, name

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        return (yield from self._noted())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        return (yield from self._noted())

    def _noted(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except BaseException as error:
            sentence = f"after its tests, {self._name}: {error!r}"
            _append(self._file, {"problem": sentence})
            raise


def _append(file: Path, line: Mapping[str, Any]) -> None:
    """Write a line in one go: others write, too."""
    with file.open("ab", buffering=0) as written:
        written.write(json.dumps(line).encode() + b"\n")


# -- in the process that hears of them ---------------------------------------------


class _Recorder:
    """Writes a line for each test that has ended."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._file.write_bytes(b"")
        self._gone: list[str] = []
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._counted = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[VARIABLE] = str(self._file)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            self._gone.append(f"{node.gateway.id}: {error}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # With workers it has none.
        if session.items:
            self._write_number(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._counted:
            self._write_number(len(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write({"problem": f"{report.nodeid} cannot be collected."})

    def _write_number(self, number: int) -> None:
        self._counted = True
        self._write({"collected": number})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = GROUP.sub(r"\1", report.nodeid)
        reports = self._reports.setdefault(test, [])
        reports.append(report)
        # One that ended its worker has a report of xdist's and no other.
        if report.when not in ("setup", "call"):
            if report.when != "teardown" and self._gone:
                self._gone.pop()
            self._write(asdict(_record(test, reports)))
            del self._reports[test]

    def pytest_sessionfinish(self) -> None:
        for sentence in self._gone:
            self._write({"problem": f"after its tests, {sentence}"})

    def _write(self, line: Mapping[str, Any]) -> None:
        _append(self._file, line)


def _record(test: str, reports: list[pytest.TestReport]) -> Record:
    cost = Cost()
    for report in reports:
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, dict):
                cost = Cost(**value)
    for outcome in ("failed", "skipped"):
        text = "\n".join(_texts(each for each in reports if each.outcome == outcome))
        if text:
            at_end = any(_ends_shared(each) for each in reports if each.failed)
            return Record(test, outcome, cost, text, at_end)
    return Record(test, "passed", cost)


def _ends_shared(report: pytest.TestReport) -> bool:
    return report.when == "teardown" and (SHARED, True) in report.user_properties


def _texts(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    for report in reports:
        match report.longrepr:
            case (_, _, str(reason)):
                yield reason
            case _:
                yield report.longreprtext or report.outcome


def pytest_configure(config: pytest.Config) -> None:
    # Tests may run a pytest of their own, which is not to write there.
    file = os.environ.pop(VARIABLE, "")
    worker = getattr(config, "workerinput", {})
    if file or VARIABLE in worker:
        begin_to_count()
        config.pluginmanager.register(_Meter())
    if VARIABLE in worker:
        ends_of = _End(Path(worker[VARIABLE]), worker["workerid"])
        config.pluginmanager.register(ends_of)
    if file:
        config.pluginmanager.register(_Recorder(Path(file)))
