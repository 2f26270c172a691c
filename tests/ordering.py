"""A pytest plugin: in which order tests run, and which of them are measured.

    pytest -n 4 --dist loadgroup --no-loadscope-reorder

Under coverage a processor does half as much, whatever it runs.  So of the cases of a
test function the first, the middle and the last are measured; they run first.  What
drives other programs, and what the rest of the cases is, runs after those, as fast as
it can, and begins with what takes minutes: begun last, it would leave all workers but
one with nothing to do.

Tests whose rows pytest-django takes back are measured, all of them, and stay where that
has put them: those that empty the tables come after those that count on them.

Tests of one `xdist_group` run on one worker. pytest-xdist 3.8 writes the group where
pytest 9.2 does not look any more, and would scatter them: each worker would start what
they share.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Any, Final

import coverage
import pytest

LONG: Final = (
    "test_databases.py",
    "audit/test_many_processes.py",
    "conformance/test_suite.py",
    "process/test_outages.py",
    "process/test_servers.py",
    "process/test_lifecycle.py",
    "migrations/test_there_and_back.py",
)
"""Modules that have tests of many seconds, the longest first."""

DRIVING: Final = frozenset(
    {
        "benchmarks",
        "browser",
        "clients",
        "conformance",
        "differential",
        "drill",
        "newcomer",
        "wire",
    }
)
"""Rooms whose tests have nothing of the app in their own process."""

ROWS: Final = frozenset({"db", "transactional_db"})
"""The fixtures by which pytest-django takes rows back, or its mark does."""

_measured: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        # Only a worker of `--dist loadgroup` has it.
        written = vars(item).get("_nodeid")
        if written is not None and written != item.nodeid:
            item._id = type(item.id).parse(written)
    _choose(items)
    # All else keeps its order.
    items.sort(key=_place)


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Measure no more, for good, where the first one comes that is not measured."""
    measuring = coverage.Coverage.current()
    if measuring is not None and not item.stash[_measured]:
        measuring.stop()


def _choose(items: list[Any]) -> None:
    """Mark the cases that are measured."""
    cases = Counter(map(_function, items))
    seen: Counter[str] = Counter()
    for item in items:
        function = _function(item)
        last = cases[function] - 1
        chosen = seen[function] in (0, last // 2, last)
        item.stash[_measured] = _has_rows(item) or (chosen and not _drives(item))
        seen[function] += 1


def _written(item: pytest.Item) -> PurePath:
    """Return the module as ids name it: what is above the checkout does not count."""
    return PurePath(item.nodeid.partition("::")[0])


def _function(item: pytest.Item) -> str:
    return f"{item.path}::{getattr(item, 'originalname', item.name)}"


def _has_rows(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("django_db") is not None
    return marked or not ROWS.isdisjoint(getattr(item, "fixturenames", ()))


def _drives(item: pytest.Item) -> bool:
    return (
        _length(item) < len(LONG)
        or item.get_closest_marker("xdist_group") is not None
        or not DRIVING.isdisjoint(_written(item).parts)
    )


def _length(item: pytest.Item) -> int:
    path = _written(item)
    places = [at for at, module in enumerate(LONG) if path.match(f"tests/{module}")]
    return places[0] if places else len(LONG)


def _place(item: pytest.Item) -> tuple[bool, bool, int]:
    grouped = item.get_closest_marker("xdist_group") is not None
    return not item.stash[_measured], not grouped, _length(item)
