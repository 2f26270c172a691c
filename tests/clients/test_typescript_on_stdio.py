"""The TypeScript SDKs start `mcp_stdio` themselves: all that is tried over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients import test_typescript
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.node import report_of
from tests.clients.test_typescript import PROGRAMS, PROGRESSED, era, program, steps
from tests.drill.piped import COMMAND

__all__ = ["era", "program", "steps"]

globals().update(
    {
        name: found
        for name, found in vars(test_typescript).items()
        if name.startswith("test_")
    }
)


@pytest.fixture(scope="module")
def report(program: str, era: str, stdio_environment: dict[str, str]) -> dict[str, Any]:
    script, _ = PROGRAMS[program]
    word = {STATEFUL: "stateful", STATELESS: "stateless"}[era]
    return report_of(script, json.dumps(COMMAND), word, **stdio_environment)


def test_progress(steps: dict[str, Any]) -> None:
    """In order.  Of one chunk the SDKs hand the answer on first, and drop the rest."""
    found = steps["progress"]
    assert found["said"] == "done 20"
    assert found["progressed"]
    assert found["progressed"] == PROGRESSED[: len(found["progressed"])]
