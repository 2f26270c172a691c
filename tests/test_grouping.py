"""Which tests go to one worker, and which begin first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.coverage_table import ROOT
from tests.grouping import (
    LONG,
    place_of,
    pytest_collection_modifyitems,
    scope_of,
)

MODULE = """
import pytest

@pytest.mark.parametrize("text", ["a", "a@b", "c]@d"])
def test_it(text):
    pass
"""


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/test_conf.py::test_it", "tests/test_conf.py"),
        ("tests/test_conf.py::test_it[a@b]", "tests/test_conf.py"),
        ("tests/test_conf.py::TestIt::test_it", "tests/test_conf.py"),
        ("tests/browser/test_live.py::test_it@browser", "browser"),
        ("tests/process/test_x.py::test_it[a@b]@cluster mariadb", "cluster mariadb"),
        (
            "tests/process/test_outages.py::test_it[a]",
            "tests/process/test_outages.py::test_it[a]",
        ),
    ],
)
def test_what_goes_to_one_worker(nodeid: str, scope: str) -> None:
    assert scope_of(nodeid) == scope


def test_what_takes_long_is_there() -> None:
    for place, name in enumerate(LONG):
        assert (ROOT / "tests" / name).exists()
        assert place_of(f"tests/{name}") == place


def test_what_takes_long_begins_and_folders_stay_together() -> None:
    def item(path: str, group: str | None = None) -> Any:
        return SimpleNamespace(
            path=Path(path), get_closest_marker=lambda _: group, nodeid=path
        )

    long = [item(f"tests/{name}") for name in LONG]
    grouped = [item("tests/a/test_1.py", "group"), item("tests/b/test_1.py", "group")]
    rest = [
        item(f"tests/{name}.py")
        for name in ("b/test_2", "b/test_3", "a/test_2", "a/test_3")
    ]
    items = [rest[0], rest[2], grouped[1], rest[1], grouped[0], *long[::-1], rest[3]]
    pytest_collection_modifyitems(items)
    # The folder that was met first is the first.
    assert items == [*long, *grouped[::-1], *rest]


def test_a_module_is_made_ready_by_one_worker(tmp_path: Path) -> None:
    for name in ("test_first.py", "test_second.py", "test_third.py"):
        (tmp_path / name).write_text(MODULE)
    workers = ["-p", "xdist", "-n", "2", "--dist", "loadgroup"]
    plugins = ["-p", "tests.grouping"]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--rootdir=.", *workers, *plugins],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    ran = set(re.findall(r"\[(gw\d)\].* PASSED (\S+?)::", finished.stdout))
    modules = [module for _, module in ran]
    assert sorted(modules) == ["test_first.py", "test_second.py", "test_third.py"]
