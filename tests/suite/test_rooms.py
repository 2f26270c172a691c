"""Which tests drive programs."""

from __future__ import annotations

import pytest

from tests.suite.rooms import DRIVING, ROOT, drives, modules_in_process, room


@pytest.mark.parametrize("each", sorted(DRIVING))
def test_each_that_is_named_is_there(each: str) -> None:
    assert (ROOT / "tests" / each).exists()
    assert drives(f"tests/{each}")


@pytest.mark.parametrize(
    ("path", "driving"),
    [
        ("tests/wire/test_events.py", True),
        ("tests/wire", True),
        ("tests/process/test_outages.py", True),
        ("tests/process/test_loading.py", False),
        ("tests/process", False),
        ("tests/test_conf.py", False),
        ("tests/pools/test_outages.py", False),
    ],
)
def test_folders_and_modules(path: str, driving: bool) -> None:
    assert drives(path) is driving
    assert (path in modules_in_process()) is (path.endswith(".py") and not driving)


def test_rooms() -> None:
    assert room("tests/admin/calls/test_log.py") == "admin"
    assert room("mcp_app/admin/calls/log.py") == "admin"
    assert room("tests/test_conf.py") == room("mcp_app/conf.py") == ""
