"""What servers are given by those who start them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from coverage import Coverage

from tests.drill.running import FIGURES, environment_of, measured

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


def test_a_server_is_measured_where_its_test_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = Coverage(data_file=str(tmp_path / "figures"), config_file=False)
    monkeypatch.setenv(FIGURES, figures.config.serialize())
    assert is_measured(measured())
    assert not is_measured({})


def test_no_server_is_measured_where_tests_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(FIGURES, raising=False)
    assert not is_measured(measured())
