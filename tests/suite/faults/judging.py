"""Whether the tests find a fault, in a copy of the tree, the nearest tests first."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from tests.suite.commands import Ended, run
from tests.suite.faults.listing import Fault, planted
from tests.suite.owners import owner, shared_folder
from tests.suite.reach import Step
from tests.suite.sweeping import sweep

LINKED: Final = (".venv", "node_modules")
TOGETHER: Final = 30
"""Modules that one pytest runs, beyond the mirror's folder: to begin costs seconds."""
HANGS_S: Final = 240
"""So long no single test takes."""
ENDS_S: Final = 3_600
OPTIONS: Final = (
    *("-x", "-v", "-rfE", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("-o", "faulthandler_exit_on_timeout=true"),
)
HANG: Final = re.compile(r"Timeout \(\d+:\d\d:\d\d")
BEGUN: Final = re.compile(
    r"^(tests/\S+\.py::.+?)(?: ?Timeout \(.*| [A-Z]{5,} +\[.*| )?$", re.MULTILINE
)
"""A test that runs, or has: its name is written before it runs."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a fault.

    `outcome` is "caught", "hang", "survived" or "does not apply"; `seconds` are those
    of the processor, of all tests that ran.
    """

    fault: Fault
    outcome: str
    test: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        what = {
            "caught": f"caught by {self.test}",
            "hang": f"caught by a hang: {self.test}",
            "survived": "SURVIVED",
            "does not apply": "does not apply any more",
        }[self.outcome]
        return f"{self.fault}\n  {what}, {self.seconds:.0f} s"

    def as_json(self) -> dict[str, Any]:
        return asdict(self.fault) | {
            "outcome": self.outcome,
            "test": self.test,
            "seconds": round(self.seconds, 1),
        }


def named(ended: Ended) -> str:
    """Return the first test that failed, or the last one that had begun."""
    tests = ended.failed or BEGUN.findall(ended.output)[-1:]
    return tests[0] if tests else ended.output.strip().rpartition("\n")[2]


def hangs(ended: Ended) -> bool:
    return ended.status == -signal.SIGKILL or bool(HANG.search(ended.output))


class Copy:
    """A copy of a checkout, whose files are those that git knows or would."""

    def __init__(self, root: Path, folder: Path, stop: Event) -> None:
        self.root = folder / "tree"
        self._temporary = folder / "temporary"
        self._temporary.mkdir()
        self._stop = stop
        self._changes = 0
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file() and name not in LINKED:
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.root / name)
        for name in LINKED:
            if (root / name).exists():
                (self.root / name).symlink_to((root / name).resolve())

    def judge(self, fault: Fault, steps: Sequence[Step]) -> Verdict:
        """Run the steps with the fault until a test fails that passes without it."""
        path = self.root / fault.file
        source = path.read_text() if path.is_file() else ""
        changed = planted(source, fault) if source else None
        if changed is None:
            return Verdict(fault, "does not apply")
        seconds = 0.0
        for modules in stages(steps):
            broken: list[str] = []
            while left := [each for each in modules if each not in broken]:
                deselected = [f"--deselect={each}" for each in broken]
                with self._written(path, changed):
                    ended = self.tested(*left, *deselected)
                seconds += ended.seconds
                if ended.green:
                    break
                outcome, test = "hang" if hangs(ended) else "caught", named(ended)
                if outcome == "hang" or test in broken or self._is_green(test):
                    return Verdict(fault, outcome, test, seconds)
                # It fails without the fault, too: a test, or a whole module.
                broken.append(test)
        return Verdict(fault, "survived", "", seconds)

    def _is_green(self, test: str) -> bool:
        module = test.partition("::")[0]
        # What no test is named for has ended pytest itself: the fault has.
        return not (self.root / module).is_file() or self.tested(test).green

    def tested(self, *arguments: str) -> Ended:
        """Run pytest here until the first failure. Raises `Stopped`."""
        return run(
            [
                *(sys.executable, "-m", "pytest", *OPTIONS),
                *("-o", f"faulthandler_timeout={HANGS_S}", *arguments),
            ],
            self.root,
            self._stop,
            ENDS_S,
            {"TMPDIR": str(self._temporary)},
        )

    @contextmanager
    def _written(self, path: Path, text: str) -> Iterator[None]:
        """Let a file have another text for a while.

        A compiled module is known by its source's second and size: each has another.
        """
        source, status = path.read_text(), path.stat()
        self._changes += 1
        try:
            path.write_text(text)
            moment = int(status.st_mtime) + self._changes
            os.utime(path, (moment, moment))
            yield
        finally:
            path.write_text(source)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def stages(steps: Sequence[Step]) -> list[list[str]]:
    """Return the modules of each run: a mirror, its folder, and then more of them."""
    runs: list[list[str]] = []
    for place, step in enumerate(steps):
        if place <= 2 or len(runs[-1]) >= TOGETHER:
            runs.append([])
        runs[-1].extend(step.modules)
    return runs


def near(fault: Fault, steps: Sequence[Step]) -> list[Step]:
    """Return the steps that mirror a fault's file, its folder and its room."""
    own = f"tests/{fault.room}"
    return [
        each for each in steps if f"{each.name}/".startswith(("mirror/", f"{own}/"))
    ]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder that is removed: by the next run, if this process is killed."""
    sweep()
    with tempfile.TemporaryDirectory(
        prefix=owner(), dir=shared_folder(), ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
