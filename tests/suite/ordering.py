"""A pytest plugin: in which order tests run.

    pytest -n 4 --dist loadgroup --no-loadscope-reorder

Tests whose rows pytest-django takes back come first, where it has put them: those that
empty the tables come after those that count on them.  Then come tests that share what
they started, and modules that take long: begun last, they would leave all workers but
one with nothing to do.

Tests of one `xdist_group` run on one worker. pytest-xdist 3.8 writes the group where
pytest 9.2 does not look any more, and would scatter them: each worker would start what
they share.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import Any, Final

import pytest

LONG: Final = (
    "tests/test_databases.py",
    "tests/audit/test_many_processes.py",
    "tests/conformance/test_suite.py",
    "tests/process/test_outages.py",
    "tests/process/test_servers.py",
    "tests/process/test_lifecycle.py",
    "tests/migrations/test_there_and_back.py",
)
"""Modules that have tests of many seconds, the longest first."""

ROWS: Final = frozenset({"db", "transactional_db"})
"""The fixtures by which pytest-django takes rows back, or its mark does."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        # Only a worker of `--dist loadgroup` has it.
        written = vars(item).get("_nodeid")
        if written is not None and written != item.nodeid:
            item._id = type(item.id).parse(written)
    # All else keeps its order.
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, bool, int]:
    if _has_rows(item):
        return False, False, 0
    # As ids name it: what is above the checkout does not count.
    module = item.nodeid.partition("::")[0]
    return True, item.get_closest_marker("xdist_group") is None, _length(module)


def _has_rows(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("django_db") is not None
    return marked or not ROWS.isdisjoint(getattr(item, "fixturenames", ()))


@cache
def _length(module: str) -> int:
    path = PurePath(module)
    return next((at for at, name in enumerate(LONG) if path.match(name)), len(LONG))
