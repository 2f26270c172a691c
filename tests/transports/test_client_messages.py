"""What a cancellation names: an id, and nothing that is merely equal to one."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.transports.client_messages import LOGGED, cancelled_id


@pytest.mark.parametrize("request_id", [1, 0, -1, "1", ""])
def test_an_id(request_id: Any) -> None:
    assert cancelled_id({"requestId": request_id}) is request_id


@pytest.mark.parametrize("request_id", [None, True, False, 1.0, [1], {}])
def test_no_id(request_id: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "mcp_app.calls")
    assert cancelled_id({"requestId": request_id}) is None
    assert cancelled_id({}) is None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, ""),
        ({"reason": "Enough."}, "Enough."),
        ({"reason": "x" * LOGGED}, "x" * LOGGED),
        ({"reason": "x" * (LOGGED + 1)}, "x" * LOGGED),
        ({"reason": None}, "None"),
    ],
)
def test_why_is_logged_shortened(
    params: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcp_app.calls")
    cancelled_id({"requestId": 1, **params})
    (record,) = caplog.records
    assert vars(record)["reason"] == reason
