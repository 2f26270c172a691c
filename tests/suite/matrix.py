"""Run the tests without programs on each Python with each Django: `make matrix`.

    python -m tests.suite.matrix [--python 3.13] [--django 6.1] [--workers 2]

Pythons are those that the machine has, on PATH or below ~/.pyenv.  Each pair has an
environment of its own below `.matrix`, which the next run uses again, and its output in
a log beside it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.suite.rooms import ROOT
from tests.suite.run import say
from tests.suite.selecting import IN_PROCESS

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
DJANGOS: Final[Mapping[str, str]] = {"5.2": "3.11", "6.0": "3.12", "6.1": "3.12"}
"""Each Django, and the first of our Pythons that it runs on."""
FOLDER: Final = ROOT / ".matrix"
REQUIREMENTS: Final = ("requirements.txt", "requirements-test.txt")
DJANGO_PIN: Final = re.compile(r"^django==.*$", re.MULTILINE)
FAILED_TO_INSTALL: Final = "could not be installed"


@dataclass(frozen=True, slots=True)
class Cell:
    """A Python and a Django: `3.12`, `6.0`."""

    python: str
    django: str

    @property
    def name(self) -> str:
        """What its environment and its log are called."""
        return f"python{self.python}-django{self.django}"


def cells(pythons: Iterable[str], djangos: Iterable[str]) -> list[Cell]:
    """Return the pairs that go together."""
    return [
        Cell(python, django)
        for python in pythons
        for django in djangos
        if _order(python) >= _order(DJANGOS[django])
    ]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def interpreter(python: str) -> str | None:
    """Return the path of a Python that runs, or None."""
    pyenv = Path.home().glob(f".pyenv/versions/{python}.*/bin/python")
    for path in (*sorted(map(str, pyenv)), shutil.which(f"python{python}")):
        if path is not None and _runs(path, python):
            return path
    return None


def _runs(path: str, python: str) -> bool:
    # A shim of pyenv is there for a Python that is not.
    answer = subprocess.run([path, "--version"], capture_output=True, check=False)
    return answer.stdout.startswith(f"Python {python}.".encode())


def requirements(text: str, django: str) -> str:
    """Return pinned requirements with the newest release of another Django."""
    return DJANGO_PIN.sub(f"django~={django}.0", text)


def prepare(cell: Cell, path: str, log: Path) -> bool:
    """Make the environment, unless it is there; return whether it could be made."""
    environment = FOLDER / cell.name
    lists = [FOLDER / f"{cell.name}-{each}" for each in REQUIREMENTS]
    for source, target in zip(REQUIREMENTS, lists, strict=True):
        target.write_text(requirements((ROOT / source).read_text(), cell.django))
    install = [argument for each in lists for argument in ("-r", str(each))]
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    with log.open("w") as output:
        for command in ([path, "-m", "venv", str(environment)], [*pip, *install]):
            try:
                subprocess.run(command, stdout=output, stderr=output, check=True)
            except subprocess.CalledProcessError:
                return False
    return True


def run(cell: Cell, path: str, workers: int) -> str:
    """Return the last line of the tests, or why there is none."""
    log = FOLDER / f"{cell.name}.log"
    if not prepare(cell, path, log):
        return FAILED_TO_INSTALL
    python = str(FOLDER / cell.name / "bin" / "python")
    options = (f"--part={IN_PROCESS}", "-m", "not long", "-n", str(workers), "-q")
    with log.open("w") as output:
        subprocess.run(
            [python, "-m", "pytest", *options, "-p", "no:cacheprovider"],
            cwd=ROOT,
            stdout=output,
            stderr=output,
            check=False,
        )
    return log.read_text().rstrip().rpartition("\n")[2]


def is_green(line: str) -> bool:
    """Return whether tests passed, and none failed."""
    return " passed" in line and "failed" not in line and "error" not in line


def main() -> int:
    """Return 0 if the tests passed on each pair."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", choices=PYTHONS, action="append")
    parser.add_argument("--django", choices=DJANGOS, action="append")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    lines = []
    for python in options.python or PYTHONS:
        path = interpreter(python)
        if path is None:
            say(f"Python {python} is not on this machine.")
            continue
        for cell in cells([python], options.django or DJANGOS):
            lines.append(run(cell, path, options.workers))
            say(f"{cell.name}: {lines[-1]}")
    return int(not lines or not all(map(is_green, lines)))


if __name__ == "__main__":
    sys.exit(main())
