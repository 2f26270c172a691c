"""What a cancellation names: an id, and nothing that is merely equal to one."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.protocol.envelope import Notification
from mcp_app.transports.client_messages import (
    CANCELLED,
    LOGGED,
    cancelled_id,
    log_cancellations,
)


def cancellation(**params: Any) -> Notification:
    return Notification(CANCELLED, params)


@pytest.mark.parametrize("request_id", [1, 0, -1, "1", ""])
def test_an_id(request_id: Any) -> None:
    assert cancelled_id({"requestId": request_id}) is request_id


@pytest.mark.parametrize("request_id", [None, True, False, 1.0, [1], {}])
def test_no_id(request_id: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "mcp_app.calls")
    assert cancelled_id({"requestId": request_id}) is None
    assert cancelled_id({}) is None
    log_cancellations([cancellation(requestId=request_id), cancellation()])
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
    log_cancellations([cancellation(requestId=1, **params)])
    (record,) = caplog.records
    assert record.getMessage() == "A client cancelled a request."
    assert vars(record)["reason"] == reason


def test_many_at_once_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "mcp_app.calls")
    others = Notification("notifications/initialized", {"requestId": 7})
    many = [cancellation(requestId=each, reason=str(each)) for each in range(3)]
    log_cancellations([others, *many, cancellation(requestId=None)])
    (record,) = caplog.records
    assert record.getMessage() == "A client cancelled 3 requests."
    assert vars(record)["reason"] == "0"
