"""The message that ends a stream whose requests have no other answer."""

from __future__ import annotations

import json

import pytest

from mcp_app.protocol.errors import InternalError
from mcp_app.streams.event_ids import final_message, is_answer, is_batch


def test_one_request_and_a_batch() -> None:
    error = InternalError("gone", {"retryable": False})
    body = {"code": -32603, "message": "gone", "data": {"retryable": False}}
    for requests in ("7", '"[7]"'):
        assert not is_batch(requests)
        assert json.loads(final_message(requests, error)) == {
            "jsonrpc": "2.0",
            "id": json.loads(requests),
            "error": body,
        }
    for requests in ("[7]", '["a", 2]'):
        assert is_batch(requests)
        answers = json.loads(final_message(requests, error))
        assert [each["id"] for each in answers] == json.loads(requests)
        assert all(each["error"] == body for each in answers)


@pytest.mark.parametrize(
    ("message", "answers"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": 1, "error": {"code": -32603, "message": "gone"}}, True),
        ([{"id": 1, "result": {}}], True),
        ({"method": "notifications/progress", "params": {}}, False),
        ({"id": "s1", "method": "elicitation/create", "params": {}}, False),
    ],
)
def test_a_question_or_a_notification_does_not_end_a_stream(
    message: object, answers: bool
) -> None:
    assert is_answer(json.dumps(message).encode()) is answers
