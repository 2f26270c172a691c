"""A pytest plugin: tests of one `xdist_group` run on one worker, beside each other.

pytest-xdist 3.8 writes the group where pytest 9.2 does not look any more, and would
scatter them: each worker would start what they share.
"""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        # Only a worker of `--dist loadgroup` has it.
        written = vars(item).get("_nodeid")
        if written is not None and written != item.nodeid:
            item._id = type(item.id).parse(written)
