"""What the workers of a pytest of its own find when they begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apart import pytest_apart
from tests.suite.marks import long_cases

WRITES_NOTHING = """
import sys

def pytest_configure(config):
    sys.dont_write_bytecode = hasattr(config, "workerinput")
"""


@pytest.mark.parametrize(
    "plugins", [("-p", "tests.suite.compiling"), *long_cases(((),))]
)
def test_modules_are_rewritten_before_workers_begin(
    tmp_path: Path, plugins: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(WRITES_NOTHING)
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert __file__\n")
    ended = pytest_apart(tmp_path, "-p", "xdist", *plugins, "-n", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    written = list(tmp_path.glob("__pycache__/test_it.*-pytest-*.pyc"))
    assert len(written) == (1 if plugins else 0)


@pytest.mark.long
def test_a_module_that_cannot_be_read_is_told_where_it_is_collected(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(:\n")
    options = ("-p", "xdist", "-p", "tests.suite.compiling", "-n", "1")
    ended = pytest_apart(tmp_path, *options)
    assert "ERROR test_it.py" in ended.stdout
