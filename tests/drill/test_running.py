"""What servers are given by those who start them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from coverage import Coverage

from tests.drill.running import environment_of, unmeasured_but_first

PROGRAM = "import coverage; print(coverage.Coverage.current() is not None)"


def is_measured(given: Mapping[str, str]) -> bool:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment_of("uvicorn", {**given, "DATABASE_URL": ""}),
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip() == "True"


def test_of_servers_that_do_the_same_the_first_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = Coverage(data_file=str(tmp_path / "figures"), config_file=False)
    config = figures.config.serialize()
    monkeypatch.setenv("COVERAGE_PROCESS_CONFIG", config)
    measured = [is_measured(given) for given in unmeasured_but_first(3)]
    assert measured == [True, False, False]
