"""The command line of the MCP Inspector starts `mcp_stdio` itself, in both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients import test_inspector
from tests.clients.node import node
from tests.clients.test_inspector import ERAS, INSPECTOR, Run
from tests.drill.piped import COMMAND

pytestmark = pytest.mark.long

TRIED: Final = (
    "test_negotiation",
    "test_lists_tools_that_any_client_can_use",
    "test_any_json_comes_back",
    "test_calls_side_by_side",
)
globals().update({name: vars(test_inspector)[name] for name in TRIED})

PASSED_ON: Final = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")


@pytest.fixture
def run(stdio_environment: dict[str, str], era: str, tmp_path: Path) -> Run:
    def run(method: str, *options: str) -> tuple[int, dict[str, Any], str]:
        given = [f"-e{name}={stdio_environment[name]}" for name in PASSED_ON]
        arguments = ["--cli", *COMMAND, *given, "--protocol-era", ERAS[era]]
        arguments += ["--format", "json", "--method", method, *options]
        ended = node(INSPECTOR, *arguments, HOME=str(tmp_path))
        reply = json.loads(ended.stdout) if ended.stdout else {}
        return ended.returncode, reply.get("result", {}), ended.stderr

    return run
