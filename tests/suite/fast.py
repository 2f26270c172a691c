"""What a change may have broken, in some 90 seconds: `make test-fast`.

    make test-fast                            what differs from HEAD, and what is new
    make test-fast SINCE=HEAD~3               ... from another commit
    make test-fast FILES="mcp_app/conf.py"    these files, whether they changed or not

ruff, mypy and import-linter look at everything, and each module must have a test.  Then
the tests run that can import what changed and drive no programs: those that failed last
time, and then the nearest first.  Two jobs run side by side.  Nothing begins after 90
seconds, and what was left out is named.  Ends with 0 if all that ran has passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from threading import Event
from typing import Final

from tests.suite.commands import Ended, Stopped, end_as_by_control_c, run
from tests.suite.reach import Step, of_checkout
from tests.suite.rooms import ROOT, modules_in_process, room
from tests.suite.sweeping import sweep

BEGINS_S: Final = 90.0
ENDS_S: Final = 900.0
SIDE_BY_SIDE: Final = 2
TOGETHER: Final = 6
"""Modules that one pytest runs: to begin costs it seconds."""
PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-q", "-rfE", "-m", "not long"),
    *("-p", "no:randomly"),
)


@dataclass(frozen=True, slots=True)
class Job:
    """A command, and the test modules that it runs."""

    name: str
    command: tuple[str, ...]
    modules: tuple[str, ...] = ()


CHECKS: Final = (
    Job("mypy", ("mypy",)),
    Job("ruff check", ("ruff", "check", ".")),
    Job("ruff format", ("ruff", "format", "--check", ".")),
    Job("import-linter", ("lint-imports",)),
    Job("each module has a test", (*PYTEST, "tests/suite/test_mirror.py")),
)


# -- what runs ------------------------------------------------------------------------


def changed(root: Path, since: str) -> list[str]:
    """Return the files that differ from a commit, and those that git does not know.

    Raises `CalledProcessError` for what is no commit.
    """
    return [
        *_listed(root, "diff", "--name-only", "-z", since, "--"),
        *_listed(root, "ls-files", "--others", "--exclude-standard", "-z"),
    ]


def _listed(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    )
    return [each for each in done.stdout.split("\0") if each]


def unknown(root: Path, files: Iterable[str]) -> list[str]:
    """Return those that are no files, and that git does not know as deleted ones."""
    gone = [each for each in files if not (root / each).is_file()]
    within = [each for each in gone if PurePath(each).parts[:1] != ("..",)]
    if not within:
        return gone
    deleted = {
        *_listed(root, "ls-files", "-z", "--", *within),
        *_listed(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *within),
    }
    return [each for each in gone if each not in deleted]


def jobs_of(steps: Iterable[Step]) -> Iterator[Job]:
    """Yield a job for each few modules of a step."""
    for step in steps:
        for first in range(0, len(step.modules), TOGETHER):
            modules = step.modules[first : first + TOGETHER]
            command = (*PYTEST, "-p", "no:cacheprovider", *modules)
            yield Job(step.name, command, modules)


class LastFailed:
    """The tests that failed when they ran last, where pytest notes them."""

    def __init__(self, root: Path) -> None:
        self._file = root / ".pytest_cache/v/cache/lastfailed"

    def jobs(self) -> Iterator[Job]:
        """Yield what runs those of them that drive no programs."""
        modules = {each.partition("::")[0] for each in self._noted()}
        if here := tuple(sorted(modules.intersection(modules_in_process()))):
            options = ("--last-failed", "--last-failed-no-failures=none")
            yield Job("failed last time", (*PYTEST, *options, *here))

    def note(self, modules: Iterable[str], failed: Iterable[str]) -> None:
        """Note which tests failed of the modules that ran."""
        ran = set(modules)
        left = {each for each in self._noted() if each.partition("::")[0] not in ran}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        noted = dict.fromkeys(sorted(left.union(failed)), True)
        self._file.write_text(json.dumps(noted))

    def _noted(self) -> set[str]:
        try:
            return set(json.loads(self._file.read_text()))
        except (FileNotFoundError, ValueError):
            return set()


# -- running it -----------------------------------------------------------------------


@dataclass
class Outcome:
    """What ran, in the order in which it ended, and what did not."""

    ran: list[tuple[Job, Ended]] = field(default_factory=list)
    left_out: list[Job] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(ended.green for _, ended in self.ran)


def run_in_time(root: Path, jobs: Iterable[Job], begins_s: float) -> Outcome:
    """Run jobs in their order, two side by side, of which none begins too late."""
    waiting = deque(jobs)
    outcome = Outcome()
    stop = Event()
    ends = time.monotonic() + begins_s

    def work() -> None:
        while waiting and time.monotonic() < ends:
            job = waiting.popleft()
            begin = time.monotonic()
            try:
                ended = run(job.command, root, stop, ENDS_S)
            except Stopped:
                return
            outcome.ran.append((job, ended))
            _tell(job, ended, time.monotonic() - begin)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        working = [pool.submit(work) for _ in range(SIDE_BY_SIDE)]
        try:
            for each in working:
                each.result()
        finally:
            stop.set()
    outcome.left_out.extend(waiting)
    return outcome


def _tell(job: Job, ended: Ended, seconds: float) -> None:
    result = "passed" if ended.green else "FAILED"
    modules = f": {', '.join(map(_short, job.modules))}" if job.modules else ""
    _say(f"{result} {seconds:5.0f} s  {job.name}{modules}")
    if not ended.green:
        _say(ended.output)


def _short(module: str) -> str:
    return module.removeprefix("tests/").removesuffix(".py")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def summary(untried: Sequence[str], outcome: Outcome) -> str:
    """Return the last lines: what failed, and what did not run.

    `untried` are changed files that no test can be about which runs here.
    """
    failed = [(job, ended) for job, ended in outcome.ran if not ended.green]
    modules = sum(len(each.modules) for each in outcome.left_out)
    lines = [
        *(
            f"FAILED {each}"
            for job, ended in failed
            for each in ended.failed or [job.name]
        ),
        *(f"left out: {each}" for each in _left_out(outcome)),
        *(f"only make test may try {each}" for each in sorted(untried)),
        f"{len(outcome.ran)} jobs ran, {len(failed)} failed",
    ]
    if modules:
        lines[-1] += f"; make test also runs {modules} modules that were left out"
    return "\n".join(lines)


def _left_out(outcome: Outcome) -> Iterator[str]:
    """Yield the rooms; of those that have begun, the modules."""
    rooms: dict[str, list[str]] = {}
    for job in outcome.left_out:
        if not job.modules:
            yield job.name
        for each in job.modules:
            rooms.setdefault(room(each), []).append(each)
    begun = {room(each) for job, _ in outcome.ran for each in job.modules}
    for name, modules in rooms.items():
        many = f"{len(modules)} modules"
        which = ", ".join(map(_short, modules)) if name in begun else many
        yield f"tests/{name}: {which}" if name else which


def from_root(root: Path, name: str) -> str:
    """Return a file's path from the root of the checkout, as git has it."""
    return PurePath(os.path.relpath(root / name, root)).as_posix()


def _tried(files: Sequence[str]) -> tuple[list[Step], list[str]]:
    """Return the steps for these files, and those files that have none."""
    reach = of_checkout()
    return reach.steps(files), [each for each in files if not reach.steps([each])]


def main() -> int:
    end_as_by_control_c()
    named = os.environ.get("FILES", "").split()
    files = [from_root(ROOT, each) for each in named]
    if strangers := unknown(ROOT, files):
        _say(f"There is no such file: {', '.join(strangers)}")
        return 2
    try:
        files = files or changed(ROOT, os.environ.get("SINCE") or "HEAD")
    except subprocess.CalledProcessError:
        return 2
    last = LastFailed(ROOT)
    try:
        steps, untried = _tried(files)
    except SyntaxError as error:
        _say(f"No tests run until this is mended: {error}")
        steps, untried = [], []
    jobs = [*CHECKS, *last.jobs(), *jobs_of(steps)]
    try:
        outcome = run_in_time(ROOT, jobs, BEGINS_S)
    finally:
        # What is stopped at once leaves databases behind.
        sweep()
    tested = [(job, ended) for job, ended in outcome.ran if job.modules]
    last.note(
        [each for job, _ in tested for each in job.modules],
        [each for _, ended in tested for each in ended.failed],
    )
    _say(summary(untried, outcome))
    return 0 if outcome.passed else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        _say("Stopped.")
        raise SystemExit(130) from None
