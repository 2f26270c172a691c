"""Agents of frameworks call a tool that takes long until they have its result."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from benchmarks.clients.catalog import BY_NAME, Client
from benchmarks.clients.environments import DRIVERS, folder, prepare, python
from tests.clients.test_tasks import endpoint

__all__ = ["endpoint"]

pytestmark = pytest.mark.long

WORKS: Final = json.dumps({"seconds": 7, "label": "it"})
"""For longer than the call and three waits of a second."""
PYDANTIC_AI: Final = replace(BY_NAME["pydantic-ai"], driver="agent_pydantic_ai.py")
OPENAI_AGENTS: Final = replace(
    BY_NAME["openai-agents"], driver="agent_openai_agents.py"
)
AGENT_FRAMEWORK: Final = Client(
    name="agent-framework",
    title="agent-framework-core",
    packages=("agent-framework-core==1.23.0", "mcp==2.3.0", "tenacity==9.1.4"),
    driver="agent_agent_framework.py",
)
LANGCHAIN: Final = Client(
    name="langchain-agent",
    title="langchain",
    packages=(*BY_NAME["langchain"].packages, "langchain==1.5.2"),
    driver="agent_langchain.py",
)


@pytest.mark.parametrize(
    "client",
    [PYDANTIC_AI, AGENT_FRAMEWORK, LANGCHAIN, OPENAI_AGENTS],
    ids=lambda each: each.name,
)
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
