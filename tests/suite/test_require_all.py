"""Skips under REQUIRE_ALL, in a pytest of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.apart import pytest_apart

SKIPPING_TEST = """
import pytest

def test_that_skips():
    pytest.skip("there is no Redis")
"""
SKIPPING_MODULE = """
import pytest

pytest.skip("there is no Chromium", allow_module_level=True)
"""
FAILING_AS_EXPECTED = """
import pytest

@pytest.mark.xfail
def test_that_fails():
    raise ValueError
"""


def run_pytest(
    folder: Path, source: str, require_all: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(source)
    return pytest_apart(
        folder, "-p", "tests.suite.require_all", REQUIRE_ALL=require_all
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (SKIPPING_TEST, "there is no Redis"),
        (SKIPPING_MODULE, "there is no Chromium"),
    ],
)
def test_a_skip_fails_where_all_is_required(
    tmp_path: Path, source: str, reason: str
) -> None:
    run = run_pytest(tmp_path, source, require_all="1")
    assert run.returncode not in {0, 5}
    assert f"REQUIRE_ALL=1 allows no skip: Skipped: {reason}" in run.stdout


def test_a_skip_passes_elsewhere(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, SKIPPING_TEST, require_all="")
    assert run.returncode == 0
    assert "1 skipped" in run.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, FAILING_AS_EXPECTED, require_all="1")
    assert run.returncode == 0
    assert "1 xfailed" in run.stdout
