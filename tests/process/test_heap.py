"""Once a process has loaded what it serves, collections leave it out."""

from __future__ import annotations

import gc

import pytest

from mcp_app.process import janitor
from mcp_app.process.runtime import Process


async def test_it_is_frozen_once_the_catalogs_are_loaded(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor, "_is_frozen", False)
    process.gate.mark_stale()
    before = gc.get_freeze_count()
    await process.gate.wait_for_check()
    assert gc.get_freeze_count() > before
    later = [[] for _ in range(1_000)]  # type: list[list[object]]
    frozen = gc.get_freeze_count()
    process.gate.mark_stale()
    await process.gate.wait_for_check()
    # Another load freezes nothing more: what comes and goes is collected.
    assert gc.get_freeze_count() <= frozen
    assert len(later) == 1_000
