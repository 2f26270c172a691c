"""The TypeScript SDKs start `mcp_stdio` themselves: all that is tried over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients import test_typescript
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.node import report_of
from tests.clients.test_typescript import PROGRAMS, check_progress_in_order, era, steps
from tests.drill.piped import COMMAND
from tests.marks import long_cases

# All steps are of one report.
pytestmark = pytest.mark.xdist_group("TypeScript on stdio")

__all__ = ["era", "steps"]

globals().update(
    {
        name: found
        for name, found in vars(test_typescript).items()
        if name.startswith("test_")
    }
)


@pytest.fixture(
    scope="module",
    params=[*long_cases("sdk_v1", "sdk_v2 stateful"), "sdk_v2 stateless"],
)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def report(program: str, era: str, stdio_environment: dict[str, str]) -> dict[str, Any]:
    script, _ = PROGRAMS[program]
    word = {STATEFUL: "stateful", STATELESS: "stateless"}[era]
    return report_of(script, json.dumps(COMMAND), word, **stdio_environment)


def test_progress(steps: dict[str, Any]) -> None:
    check_progress_in_order(steps)
