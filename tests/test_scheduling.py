"""Tests that end their worker, in a pytest of their own with two workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 120
CASES = 20
CRASHING = f"""
import os
import pytest

@pytest.mark.parametrize("number", range({CASES}))
@MARK
def test_it(number):
    if number in CRASHED:
        os._exit(1)
"""
ALONE = "pytest.mark.filterwarnings('default')"
GROUPED = "pytest.mark.xdist_group('some')"


@pytest.mark.parametrize("mark", [ALONE, GROUPED])
@pytest.mark.parametrize("crashed", [{7}, {0, 1, 2, 3}, {9, CASES - 2, CASES - 1}])
def test_only_the_test_that_ended_its_worker_has_failed(
    tmp_path: Path, crashed: set[int], mark: str
) -> None:
    source = CRASHING.replace("CRASHED", repr(crashed)).replace("MARK", mark)
    (tmp_path / "test_it.py").write_text(source)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--rootdir=.", "-p", "xdist"),
            *("-p", "tests.ordering", "-p", "tests.scheduling", "-q"),
            *("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"),
        ],
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")},
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    failed = re.findall(r"^FAILED .*\[(\d+)\]", ended.stdout, re.MULTILINE)
    assert {*map(int, failed)} == crashed
    passed = CASES - len(crashed)
    assert f"{len(crashed)} failed, {passed} passed" in ended.stdout
