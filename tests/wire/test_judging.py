"""What a client's judge lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.judging import Judge

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
ROOTS = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
ERROR = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "No."}}
CALLED = {"content": [{"type": "text", "text": "hello"}]}


def result(value: object, request_id: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def judged(*messages: dict[str, Any], sent: object = PING) -> set[str]:
    judge = Judge("2025-06-18")
    judge.sent(sent)
    for message in messages:
        judge.came(message)
    return judge.kinds


def test_a_result_is_that_of_its_request() -> None:
    assert judged(result({})) == {"EmptyResult"}
    assert judged(result(CALLED), sent=CALL) == {"CallToolResult"}
    assert judged(result({}), sent=[CALL | {"id": "1"}, PING]) == {"EmptyResult"}
    assert judged(ROOTS) == {"ListRootsRequest"}
    assert judged(ERROR | {"id": 1}) == {"error -32700"}


@pytest.mark.parametrize(
    "messages",
    [
        [result(CALLED)],
        [result({}, 2)],
        [result({}, "1")],
        [result({}), result({})],
        [ERROR | {"id": 2}],
        [{"jsonrpc": "2.0", "method": "tools/list"}],
        [{}],
    ],
)
def test_what_is_wrong(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(AssertionError):
        judged(*messages)


def test_an_error_without_an_id_is_of_a_revision_once_that_is_known() -> None:
    judge = Judge("2025-06-18")
    judge.came(ERROR)
    hello = {**PING, "method": "initialize"}
    judge.sent(hello)
    info = {"name": "drill", "version": "1"}
    answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    judge.came(result(answer))
    with pytest.raises(AssertionError, match="id"):
        judge.came(ERROR)
    judge.came(ERROR | {"id": None})
