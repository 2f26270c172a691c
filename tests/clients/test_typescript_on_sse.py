"""The TypeScript SDKs on HTTP+SSE: all that is tried of their sessions elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients import test_typescript
from tests.clients.node import report_of
from tests.clients.test_typescript import PROGRAMS, check_progress_in_order, era, steps
from tests.marks import long_cases

# All steps are of one report.
pytestmark = pytest.mark.xdist_group("TypeScript on SSE")

__all__ = ["era", "steps"]

SERVER = "uvicorn"

globals().update(
    {
        name: found
        for name, found in vars(test_typescript).items()
        if name.startswith("test_")
    }
)


@pytest.fixture(scope="module", params=["sdk_v1", *long_cases("sdk_v2 stateful")])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def report(endpoint: str, program: str) -> dict[str, Any]:
    script, _ = PROGRAMS[program]
    return report_of(script, f"{endpoint}/sse", "stateful")


def test_progress(steps: dict[str, Any]) -> None:
    check_progress_in_order(steps)
