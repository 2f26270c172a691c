"""Tests that are marked `databases` run again where users run: not on SQLite only.

The marks say which.  A file `on_<something>.py` is not collected by itself: what it
tries is not there on SQLite.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from tests.drill.databases import DATABASES, NEEDED
from tests.drill.running import ROOT
from tests.suite.marked import marked_modules

TESTS: Final = ROOT / "tests"
ON: Final = "on_"
LOCKS: Final = "what locks rows"
PROCESSES: Final = "processes"
TRANSPORTS: Final = "transports"
REST: Final = "all other rooms"
PARTS: Final = [
    LOCKS,
    pytest.param(PROCESSES, marks=pytest.mark.long),
    pytest.param(TRANSPORTS, marks=pytest.mark.long),
    pytest.param(REST, marks=pytest.mark.long),
]
"""Of a minute or two each, to be shared out.

`make test` has what locks rows, where these databases are not as SQLite is: the rooms
below, and the files that only servers run.
"""
PART_OF: Final = {
    "audit": LOCKS,
    "streams": LOCKS,
    "invalidation": LOCKS,
    "workbench": LOCKS,
    "process": PROCESSES,
    "transports": TRANSPORTS,
}
OWN: Final = ("COVERAGE_", "PYTEST_")
"""How the variables begin that are for the pytest of this run alone."""
HANGS_S: Final = 240
"""So long no single test takes: the stacks of what hangs are in its output."""
PATIENCE_S: Final = 840


def modules(vendor: str, part: str, tests: Path = TESTS) -> list[Path]:
    """Return the modules of a part on a database, sorted."""
    return [
        path
        for path in marked_modules(tests, "databases")
        if _part(path.relative_to(tests)) == part
        and vendor in NEEDED.get(path.name, DATABASES)
    ]


def _part(path: Path) -> str:
    return LOCKS if path.name.startswith(ON) else PART_OF.get(path.parts[0], REST)


def environment(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return what a part is given: nothing is measured there."""
    inherited = {k: v for k, v in given.items() if not k.startswith(OWN)}
    return {**inherited, "DATABASE_URL": url}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("vendor", DATABASES)
def test_on_another_database(
    vendor: str, part: str, request: pytest.FixtureRequest
) -> None:
    short = "not long" in request.config.getoption("markexpr")
    marked = "databases and not long" if short else "databases"
    hangs = f"faulthandler_timeout={HANGS_S}"
    with DATABASES[vendor]() as url:
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-m", marked, "-o", hangs, *map(str, modules(vendor, part))),
            ],
            cwd=ROOT,
            env=environment(url, os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout


def test_no_module_with_the_mark_is_left_out(tmp_path: Path) -> None:
    """In a new room, too."""
    for name in ("new/test_new.py", "new/on_servers.py", "new/deeper/on_mysql.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import pytest\npytestmark = [pytest.mark.databases]\n")
    (tmp_path / "new/test_old.py").write_text("databases = 'on SQLite alone'\n")

    def names(vendor: str, part: str) -> list[str]:
        return [path.name for path in modules(vendor, part, tmp_path)]

    assert names("mysql", LOCKS) == ["on_mysql.py", "on_servers.py"]
    assert names("postgresql", LOCKS) == ["on_servers.py"]
    assert names("mysql", REST) == names("postgresql", REST) == ["test_new.py"]


def test_each_module_with_the_mark_is_in_a_part() -> None:
    """And is one that has tests: a mark that others import would not be read."""
    cases = product(DATABASES, (LOCKS, PROCESSES, TRANSPORTS, REST))
    there = {path for case in cases for path in modules(*case)}
    assert there == set(marked_modules(TESTS, "databases"))
    assert all(path.name.startswith(("test_", ON)) for path in there)
    assert there.issuperset(TESTS.rglob(f"{ON}*.py"))


def test_a_part_is_not_measured_and_does_what_else_the_run_does() -> None:
    asked = {"REQUIRE_ALL": "1", "SECRECY": "folder"}
    given = {"COVERAGE_RUN": "1", "PYTEST_ADDOPTS": "-x", **asked}
    assert environment("url", given) == {**asked, "DATABASE_URL": "url"}
