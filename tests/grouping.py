"""A pytest plugin: what takes long begins first, and groups stay together.

Whatever takes minutes and begins last leaves all workers but one with nothing to do.

Tests of one `xdist_group` run on one worker. pytest-xdist 3.8 writes the group where
pytest 9.2 does not look any more, and would scatter them: each worker would start what
they share.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

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
"""Modules of no group that have tests of many seconds, the longest first.

Groups need not be here: pytest-xdist hands out the larger ones first.
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    # All else keeps its order.
    items.sort(key=_place)
    for item in items:
        # Only a worker of `--dist loadgroup` has it.
        written = vars(item).get("_nodeid")
        if written is not None and written != item.nodeid:
            item._id = type(item.id).parse(written)


def _place(item: pytest.Item) -> int:
    path = PurePath(item.path)
    places = [at for at, module in enumerate(LONG) if path.match(f"tests/{module}")]
    return places[0] if places else len(LONG)
