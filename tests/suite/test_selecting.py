"""Which tests a part has; and that all parts together have all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apart import pytest_apart
from tests.suite.rooms import ROOT
from tests.suite.selecting import PARTS, part_of


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("tests/admin/publishing/test_who_can_see.py", "in-process"),
        ("tests/test_asgi.py", "in-process"),
        ("tests/auth/test_token_cache.py", "in-process"),
        ("tests/wire/test_events.py", "driving"),
        ("tests/audit/test_many_processes.py", "driving"),
    ],
)
def test_parts(path: str, part: str) -> None:
    assert part_of(path) == part


def test_each_module_is_in_one_part() -> None:
    modules = [each.relative_to(ROOT) for each in ROOT.glob("tests/**/test_*.py")]
    assert {part_of(each) for each in modules} == set(PARTS)


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    plugin = ("-p", "tests.suite.selecting")
    ended = pytest_apart(tmp_path, *plugin, "--part=in-process,all")
    assert ended.returncode == 4
    assert "There is no part all: in-process, driving" in ended.stderr
