"""Agents of frameworks call a tool that takes long until they have its result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.clients.catalog import AGENTS, Client
from benchmarks.clients.environments import DRIVERS, folder, prepare, python
from tests.clients.test_tasks import endpoint

__all__ = ["endpoint"]

pytestmark = pytest.mark.long

WORKS: Final = json.dumps({"seconds": 7, "label": "it"})
"""For longer than the call and three waits of a second."""


@pytest.mark.parametrize("client", AGENTS, ids=lambda each: each.name)
def test_it_comes_to_the_result(endpoint: str, client: Client) -> None:
    runs = Path(sys.executable)
    if client.name != "openai-agents":
        # That one is installed with the tests.
        prepare(client)
        runs = python(folder(client))
    ended = subprocess.run(
        [runs, DRIVERS / client.driver, endpoint, "slow_compute", WORKS],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    *waits, result = json.loads(ended.stdout)
    assert len(waits) >= 4
    assert all("It still runs" in each for each in waits)
    assert "Computed it." in result
