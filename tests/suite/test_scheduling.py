"""Tests that end their worker, in a pytest of their own with two workers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.apart import pytest_apart
from tests.suite.marks import long_cases

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


@pytest.mark.parametrize(
    ("crashed", "mark"),
    [
        ({9, CASES - 2, CASES - 1}, GROUPED),
        *long_cases(
            ({0, 1, 2, 3}, ALONE),
            ({0, 1, 2, 3}, GROUPED),
            ({7}, ALONE),
            ({7}, GROUPED),
            ({9, CASES - 2, CASES - 1}, ALONE),
        ),
    ],
)
def test_only_the_test_that_ended_its_worker_has_failed(
    tmp_path: Path, crashed: set[int], mark: str
) -> None:
    source = CRASHING.replace("CRASHED", repr(crashed)).replace("MARK", mark)
    (tmp_path / "test_it.py").write_text(source)
    ended = pytest_apart(
        tmp_path,
        *(
            "-p",
            "xdist",
            "-p",
            "tests.suite.ordering",
            "-p",
            "tests.suite.scheduling",
            "-q",
        ),
        *("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"),
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    failed = re.findall(r"^FAILED .*\[(\d+)\]", ended.stdout, re.MULTILINE)
    assert {*map(int, failed)} == crashed
    passed = CASES - len(crashed)
    assert f"{len(crashed)} failed, {passed} passed" in ended.stdout
