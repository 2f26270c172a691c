"""Whether a test that failed is one that fails now and then.

Each runs `TIMES` times more while the other tests of its room run beside it, because
that is where a race shows.  All must pass; a skip is no pass.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from tests.suite.records import TOP, VARIABLE, Record, read, room_of
from tests.suite.rooms import ROOT

TIMES: Final = 5
MOST: Final = 2
"""More failed tests than that are no chance."""
WORKERS: Final = 3
PATIENCE_S: Final = 600
LOOK_S: Final = 0.05
END_S: Final = 30
JOURNAL: Final = ROOT / "results" / "unsteady"
LISTED: Final = ROOT / "tests" / "unsteady.toml"
MOST_LISTED: Final = 5
DAYS: Final = 14


def is_unsteady(test: str, environment: Mapping[str, str]) -> bool:
    """Run a failed test again and again beside its room; True if all runs pass."""
    load: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records"
        try:
            for _ in range(TIMES):
                if load is None or load.poll() is not None:
                    file.unlink(missing_ok=True)
                    load = _room_beside(test, {**environment, VARIABLE: str(file)})
                    _wait_until_it_runs(load, file)
                if not _passes(test, environment):
                    return False
        finally:
            if load is not None:
                _end(load)
    return True


def note(record: Record, journal: Path) -> None:
    """Append a test that failed and then passed, with the commit and the traceback."""
    journal.parent.mkdir(exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    with journal.open("a", encoding="utf-8") as file:
        file.write(f"{date.today()} {commit} {record.test}\n{record.text}\n\n")


def _passes(test: str, environment: Mapping[str, str]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", test],
                cwd=ROOT,
                env={**environment, VARIABLE: str(file)},
                check=False,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return False
        number, records = read(file)
    outcomes = {each.outcome for each in records}
    ended = done.returncode == 0 and number == len(records) > 0
    return ended and outcomes == {"passed"}


def _room_beside(test: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Begin to run the other tests of the room."""
    room = room_of(test)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", str(WORKERS)),
        *("--dist", "loadgroup", "-m", "not long", "--deselect", test),
        *(map(str, ROOT.glob("tests/test_*.py")) if room == TOP else [f"tests/{room}"]),
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )


def _wait_until_it_runs(load: subprocess.Popen[bytes], file: Path) -> None:
    """Wait for its first test: to find a room's tests takes longer than to run one."""
    end = time.monotonic() + PATIENCE_S
    while load.poll() is None and not read(file)[1] and time.monotonic() < end:
        time.sleep(LOOK_S)


def _end(load: subprocess.Popen[bytes]) -> None:
    load.send_signal(signal.SIGINT)
    try:
        load.wait(END_S)
    except subprocess.TimeoutExpired:
        load.kill()
        load.wait()


# -- those whose cause is not known yet ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """A test of tests/unsteady.toml."""

    test: str
    since: date
    known: str


def listed(path: Path) -> list[Listed]:
    """Return the tests that are known to be unsteady.

    Raises `ValueError` if there are too many, or one is not as it should be.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("unsteady", [])
    if len(entries) > MOST_LISTED:
        raise ValueError(
            f"{path.name} has {len(entries)} tests, more than {MOST_LISTED}."
        )
    return [_listed(each, path.name) for each in entries]


def _listed(entry: object, name: str) -> Listed:
    match entry:
        case {"test": str(test), "since": date() as since, "known": str(known)}:
            if since > date.today():
                raise ValueError(f"{name}: {since} of {test} has not come yet.")
            return Listed(test, since, known)
    raise ValueError(f"{name}: {entry} needs a test, a date since when, and known.")


def overdue(entries: list[Listed], today: date) -> list[str]:
    """Return a sentence for each test that has been listed for too long."""
    return [
        f"{each.test} is unsteady since {each.since}, longer than {DAYS} days."
        for each in entries
        if (today - each.since).days > DAYS
    ]
