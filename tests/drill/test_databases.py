"""Modules that need a certain database, by hand and on another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drill.databases import NEEDED
from tests.drill.running import ROOT


def modules() -> list[Path]:
    return sorted(ROOT.glob("tests/**/on_*.py"))


def test_it_is_known_what_each_of_them_needs() -> None:
    assert {each.name for each in modules()} == set(NEEDED)


@pytest.mark.long
def test_they_skip_on_sqlite_and_say_what_they_need(tmp_path: Path) -> None:
    """Whoever names one of them, or the folder's files, is told."""
    url = f"sqlite:///{tmp_path}/db.sqlite3"
    changes = {"DATABASE_URL": url, "REQUIRE_ALL": "", "PYTEST_ADDOPTS": ""}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", *map(str, modules())],
        cwd=ROOT,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "passed" not in run.stdout
    for vendors in ("postgresql or mysql", "postgresql", "mysql"):
        assert f"It needs a DATABASE_URL of {vendors}, not sqlite." in run.stdout
