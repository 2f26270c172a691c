"""Tasks with the TypeScript SDK, and with fastmcp's client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.node import report_of
from tests.drill.running import running


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running("uvicorn", {"TASK_TOOLS": "1"}) as url:
        yield url


def test_the_typescript_sdk(url: str) -> None:
    report = report_of("tasks_v1.mjs", url)
    assert report["support"]["failing_job"] == "required"
    assert report["support"]["slow_compute"] == "optional"
    assert "greet" not in report["support"]
    assert report["computed"] == ["working", "completed", "Computed it."]
    asked = ["working", "input_required", "Deleted old.txt."]
    assert report["confirmed"] == asked
    assert report["asked"] == ["Delete old.txt?"]
    assert report["failed"] == ["working", "failed", "an error"]
