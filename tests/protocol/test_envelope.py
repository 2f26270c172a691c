from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import (
    Message,
    Notification,
    Reply,
    Request,
    error_message,
    notification_message,
    parse,
    parse_batch,
    request_message,
    result_message,
)
from mcp_app.protocol.errors import InvalidParams, InvalidRequest, ResourceNotFound
from mcp_app.protocol.json_types import JsonObject

LARGEST = 2**53 - 1
ERROR = {"code": -32603, "message": "Oops"}

ACCEPTED: list[tuple[JsonObject, Message]] = [
    ({"id": 1, "method": "ping"}, Request(1, "ping", {})),
    ({"id": 0, "method": "ping"}, Request(0, "ping", {})),
    ({"id": -LARGEST, "method": "ping"}, Request(-LARGEST, "ping", {})),
    ({"id": LARGEST, "method": ""}, Request(LARGEST, "", {})),
    ({"id": "a", "method": "x", "params": {"b": 1}}, Request("a", "x", {"b": 1})),
    ({"id": "ä" * 1_024, "method": "x"}, Request("ä" * 1_024, "x", {})),
    ({"method": "x"}, Notification("x", {})),
    ({"method": "x", "params": {"b": None}}, Notification("x", {"b": None})),
    ({"id": 1, "method": "x", "params": None}, Request(1, "x", {})),
    ({"method": "x", "params": None}, Notification("x", {})),
    ({"id": "q", "result": {}}, Reply("q", {}, None)),
    ({"id": 7, "result": {"a": 1}}, Reply(7, {"a": 1}, None)),
    ({"id": 7, "error": ERROR}, Reply(7, None, ERROR)),
    (
        {"id": 7, "error": {**ERROR, "data": None}},
        Reply(7, None, {**ERROR, "data": None}),
    ),
]

# What the message is, what the sentence says, and the id to answer with.
REFUSED: list[tuple[object, str, str | int | None]] = [
    (None, "not null", None),
    ("ping", "not a string", None),
    (1, "not a number", None),
    (1.5, "not a number", None),
    (True, "not a boolean", None),
    ([], "not an array", None),
    ([{"jsonrpc": "2.0", "id": 1, "method": "x"}], "not an array", None),
    ({}, "jsonrpc", None),
    ({"id": 1, "method": "ping"}, "jsonrpc", 1),
    ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, "jsonrpc", "a"),
    ({"jsonrpc": 2.0, "id": 1, "method": "ping"}, "jsonrpc", 1),
    ({"jsonrpc": None, "id": 1, "result": {}}, "jsonrpc", None),
]
REFUSED_MEMBERS: list[tuple[JsonObject, str, str | int | None]] = [
    ({}, "exactly one of", None),
    ({"id": 1}, "exactly one of", 1),
    ({"id": 1, "params": {}}, "exactly one of", 1),
    ({"id": None, "method": "x"}, "An id must be", None),
    ({"id": "", "method": "x"}, "An id must be", None),
    ({"id": 1.0, "method": "x"}, "An id must be", None),
    ({"id": 1.5, "method": "x"}, "An id must be", None),
    ({"id": True, "method": "x"}, "An id must be", None),
    ({"id": [1], "method": "x"}, "An id must be", None),
    ({"id": {}, "method": "x"}, "An id must be", None),
    ({"id": LARGEST + 1, "method": "x"}, "An id must be", None),
    ({"id": "x" * 1_025, "method": "x"}, "1 to 1,024 characters", None),
    ({"id": -LARGEST - 1, "method": "x"}, "An id must be", None),
    ({"id": 1, "method": None}, "A method must be a string, not null", 1),
    (
        {"id": 1, "method": 5, "params": {}},
        "A method must be a string, not a number",
        1,
    ),
    ({"method": {}}, "A method must be a string, not an object", None),
    ({"id": 1, "method": "x", "params": []}, "not an array", 1),
    ({"id": 1, "method": "x", "params": "a"}, "not a string", 1),
    ({"id": 1, "method": "x", "params": 0}, "not a number", 1),
    ({"method": "x", "params": []}, "not an array", None),
    ({"id": 1, "method": "x", "result": {}}, 'must not have a "result"', 1),
    ({"id": 1, "method": "x", "params": {}, "error": ERROR}, '"error"', 1),
    ({"method": "x", "result": {}}, 'must not have a "result"', None),
    ({"id": 1, "result": {}, "error": ERROR}, "exactly one of", None),
    ({"result": {}}, "A reply must have the id", None),
    ({"id": None, "result": {}}, "A reply must have the id", None),
    ({"id": "x" * 1_025, "result": {}}, "1 to 1,024 characters", None),
    ({"id": None, "error": ERROR}, "A reply must have the id", None),
    ({"error": ERROR}, "A reply must have the id", None),
    ({"id": 1, "result": None}, "A result must be an object, not null", None),
    ({"id": 1, "result": []}, "A result must be an object, not an array", None),
    ({"id": 1, "error": None}, "An error must be an object, not null", None),
    ({"id": 1, "error": "bad"}, "An error must be an object, not a string", None),
    ({"id": 1, "error": {}}, "integer as code", None),
    ({"id": 1, "error": {"code": "1", "message": "x"}}, "integer as code", None),
    ({"id": 1, "error": {"code": 1.0, "message": "x"}}, "integer as code", None),
    ({"id": 1, "error": {"code": True, "message": "x"}}, "integer as code", None),
    ({"id": 1, "error": {"code": 1, "message": None}}, "integer as code", None),
]
# Refused as such, and taken where unknown members are ignored.
REFUSED_UNLESS_LENIENT: list[tuple[JsonObject, str, Message]] = [
    ({"id": 1, "method": "x", "extra": 1}, "'extra'", Request(1, "x", {})),
    (
        {"id": 1, "method": "x", "params": {"a": 1}, "extra": 1},
        "'extra'",
        Request(1, "x", {"a": 1}),
    ),
    ({"method": "x", "extra": {}}, "'extra'", Notification("x", {})),
    ({"id": 1, "result": {}, "params": {}}, "'params'", Reply(1, {}, None)),
    ({"id": 1, "error": {**ERROR, "x": 1}}, "'x'", Reply(1, None, {**ERROR, "x": 1})),
]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(("members", "message"), ACCEPTED)
def test_messages_are_told_by_their_members(
    members: JsonObject, message: Message, lenient: bool
) -> None:
    assert parse({"jsonrpc": "2.0", **members}, lenient=lenient) == message


@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_no_message_is_refused(lenient: bool) -> None:
    envelopes = [
        ({"jsonrpc": "2.0", **members}, sentence, request_id)
        for members, sentence, request_id in REFUSED_MEMBERS
    ]
    for value, sentence, request_id in [*REFUSED, *envelopes]:
        error = error_of(value, lenient)
        assert error is not None, value
        assert sentence in error.message, value
        assert error.message.endswith("."), value
        assert error.request_id == request_id, value
        assert (error.code, error.http_status) == (-32600, 400), value


def error_of(value: object, lenient: bool) -> InvalidRequest | None:
    try:
        parse(value, lenient=lenient)
    except InvalidRequest as error:
        return error
    return None


@pytest.mark.parametrize(("members", "sentence", "message"), REFUSED_UNLESS_LENIENT)
def test_lenient_ignores_unknown_members(
    members: JsonObject, sentence: str, message: Message
) -> None:
    value = {"jsonrpc": "2.0", **members}
    assert parse(value, lenient=True) == message
    with pytest.raises(InvalidRequest, match=sentence):
        parse(value)


def test_a_batch_is_its_messages_in_order() -> None:
    batch: list[object] = [
        {"jsonrpc": "2.0", "id": 1, "method": "a"},
        {"jsonrpc": "2.0", "method": "b"},
        {"jsonrpc": "2.0", "id": "1", "method": "c"},
    ]
    assert parse_batch(batch, MOST) == [
        Request(1, "a", {}),
        Notification("b", {}),
        Request("1", "c", {}),
    ]
    replies: list[object] = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in (1, 2)]
    assert parse_batch(replies, MOST) == [Reply(1, {}, None), Reply(2, {}, None)]


MOST = 5
CALL = {"jsonrpc": "2.0", "id": 1, "method": "x"}
BATCHES: list[tuple[list[object], str]] = [
    ([], "at least one"),
    (
        [CALL, 1],
        "Message 2 of the batch: A message must be a JSON object, not a number.",
    ),
    ([[CALL]], "Message 1 of the batch"),
    ([CALL, {**CALL, "extra": 1}], "Message 2 of the batch"),
    ([CALL, CALL], "the same id"),
    ([CALL] * 6, "The batch has 6 messages; at most 5 are allowed."),
    ([CALL, {"jsonrpc": "2.0", "id": 5, "result": {}}], "not both"),
]


@pytest.mark.parametrize(("batch", "sentence"), BATCHES)
def test_a_batch_is_refused_as_a_whole(batch: list[object], sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence) as caught:
        parse_batch(batch, MOST)
    assert caught.value.request_id is None


def test_a_lenient_batch_has_lenient_messages() -> None:
    batch: list[object] = [{**CALL, "extra": 1}]
    assert parse_batch(batch, MOST, lenient=True) == [Request(1, "x", {})]


def test_errors_carry_their_code_their_data_and_an_id_where_there_is_one() -> None:
    error = ResourceNotFound("x://y")
    body = {"message": "Resource not found", "data": {"uri": "x://y"}}
    assert error_message("a", error, null_id=False, code=-32002) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32002, **body},
    }
    assert error_message(None, error, null_id=False) == {
        "jsonrpc": "2.0",
        "error": {"code": -32602, **body},
    }
    assert error_message(None, InvalidParams("No."), null_id=True) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32602, "message": "No."},
    }
    assert error_message(0, InvalidParams("No."), null_id=False)["id"] == 0


ids = st.integers(-LARGEST, LARGEST) | st.text(min_size=1)
params = st.dictionaries(st.text(), st.integers() | st.text() | st.none())


@given(ids, st.text(), st.none() | params)
def test_requests_come_back(
    request_id: int | str, method: str, sent: JsonObject
) -> None:
    message = request_message(request_id, method, sent)
    assert ("params" in message) == (sent is not None)
    assert parse(jsonrpc.read(jsonrpc.write(message))) == Request(
        request_id, method, sent or {}
    )


@given(st.text(), st.none() | params)
def test_notifications_come_back(method: str, sent: JsonObject) -> None:
    message = notification_message(method, sent)
    assert parse(jsonrpc.read(jsonrpc.write(message))) == Notification(
        method, sent or {}
    )


@given(ids, params)
def test_results_come_back(request_id: int | str, result: JsonObject) -> None:
    message = result_message(request_id, result)
    assert parse(jsonrpc.read(jsonrpc.write(message))) == Reply(
        request_id, result, None
    )
