"""A pytest plugin: what takes long begins first, and what shares stays together.

Whatever takes minutes and begins last leaves all workers but one with nothing to do.

Tests of one `xdist_group` run on one worker, and so do those of one module: each worker
would write the rows, and start the servers, that a module's tests share.  pytest-xdist
3.8 writes the group where pytest 9.2 does not look any more, and would scatter them.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import Any, Final

import pytest

LONG: Final = (
    "test_databases.py",
    "wire/test_exchanges.py",
    "transports/test_stdio.py",
    "test_disabling.py",
    "audit/test_many_processes.py",
    "conformance/test_suite.py",
    "process/test_outages.py",
    "management/commands/test_mcp_stdio.py",
    "migrations/test_there_and_back.py",
    "process/test_lifecycle.py",
    "process/test_servers.py",
)
"""Modules of tests of many seconds that share little, the longest first.

Their tests go to whatever worker is free.
"""


def scope_of(nodeid: str) -> str:
    """Return what the tests have in common that go to one worker."""
    if "@" in nodeid[nodeid.rfind("]") + 1 :]:
        return nodeid.rpartition("@")[2]
    module = nodeid.partition("::")[0]
    return nodeid if place_of(module) < len(LONG) else module


@cache
def place_of(module: str) -> int:
    """Return the place in `LONG`, or one behind it."""
    places = [at for at, name in enumerate(LONG) if PurePath(module).match(name)]
    return places[0] if places else len(LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return what hands out scopes, for `--dist loadgroup`."""
    from xdist.scheduler import LoadGroupScheduling  # noqa: PLC0415 - xdist may be off

    if config.getoption("dist") != "loadgroup":
        return None
    # It would hand out the smallest scopes last, however long they take.
    config.option.loadscopereorder = False
    scheduling = LoadGroupScheduling(config, log)
    scheduling._split_scope = scope_of
    return scheduling


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    # Servers that a folder's tests share end when its tests are over.
    folders = list(dict.fromkeys(item.path.parent for item in items))
    items.sort(key=lambda item: (*_place(item), folders.index(item.path.parent)))
    for item in items:
        # Only a worker of `--dist loadgroup` has it.
        written = vars(item).get("_nodeid")
        if written is not None and written != item.nodeid:
            item._id = type(item.id).parse(written)


def _place(item: pytest.Item) -> tuple[int, bool]:
    alone = item.get_closest_marker("xdist_group") is None
    return place_of(str(item.path)), alone
