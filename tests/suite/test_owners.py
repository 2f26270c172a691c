"""A name says whether its owner is alive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drill.running import ROOT
from tests.suite import owners
from tests.suite.owners import OWNED, is_left, owned_name, owner

NAME = "from tests.suite.owners import owned_name; print(owned_name(), flush=True)"
LONGEST = 63
"""Characters that PostgreSQL keeps of a name."""


def test_what_this_process_has_is_not_left() -> None:
    for name in (owned_name(), f"{owner()}folder", f"test_{owned_name()}_gw0"):
        assert OWNED.match(name)
        assert not is_left(name)
    assert owned_name() != owned_name()


def test_what_a_process_had_that_ended_is_left() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NAME], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        process.stdout.read()
        # It has ended, and nobody has asked for its status.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_left(name)
    for each in (name, f"test_{name}", f"test_{name}_gw0"):
        assert is_left(each)


def test_a_number_may_be_another_process_by_now() -> None:
    owned = OWNED.match(name := owned_name())
    assert owned is not None
    assert is_left(name.replace(owned["start"], f"{owned['start']}0"))


def test_another_host_knows_what_it_has() -> None:
    host, pid, start = 8 * "0", 1, 1
    assert not is_left(f"mcp_{host}_{pid}_{start}_0123abcd")


def test_a_machine_of_the_same_name_and_image_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = owned_name().replace(f"_{os.getpid()}_", "_4194303_")
    assert is_left(name)
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(owners, "BOOT", tmp_path / "boot_id")
    monkeypatch.setattr(owners, "_host", owners._host.__wrapped__)
    assert not is_left(name)


def test_what_is_named_otherwise_is_not_ours() -> None:
    for name in ("postgres", "mcp", "mcp_app", "test_mcp_project", "drill_0123abcd"):
        assert not is_left(name)


def test_the_longest_name_can_be_used_with_what_others_add() -> None:
    highest, years = 2**22, 10 * 365 * 24 * 60 * 60 * 100
    name = f"mcp_{8 * 'f'}_{highest}_{years}_{8 * 'f'}"
    assert OWNED.match(name)
    assert len(f"test_{name}_gw99") <= LONGEST
