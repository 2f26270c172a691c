from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import JSONEncodeError

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import (
    MAX_ID_DIGITS,
    CallTemplate,
    Message,
    Notification,
    Reply,
    Request,
    error_message,
    notification_message,
    parse_batch,
    parse_message,
    request_message,
    result_message,
)
from mcp_app.protocol.errors import (
    InvalidParams,
    InvalidRequest,
    ParseError,
    ResourceNotFound,
)
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
    *((None, "not null", None), ("ping", "not a string", None)),
    *((1, "not a number", None), (1.5, "not a number", None)),
    *((True, "not a boolean", None), ([], "not an array", None)),
    ([{"jsonrpc": "2.0", "id": 1, "method": "x"}], "not an array", None),
    ({}, "jsonrpc", None),
    ({"id": 1, "method": "ping"}, "jsonrpc", 1),
    ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, "jsonrpc", "a"),
    ({"jsonrpc": 2.0, "id": 1, "method": "ping"}, "jsonrpc", 1),
    ({"jsonrpc": None, "id": 1, "result": {}}, "jsonrpc", None),
]
NO_IDS: list[object] = [*(None, "", 1.0, 1.5, True, [1], {}, LARGEST + 1, -LARGEST - 1)]
REFUSED_MEMBERS: list[tuple[JsonObject, str, str | int | None]] = [
    ({}, "exactly one of", None),
    ({"id": 1}, "exactly one of", 1),
    ({"id": 1, "params": {}}, "exactly one of", 1),
    *(({"id": each, "method": "x"}, "An id must be", None) for each in NO_IDS),
    ({"id": "x" * 1_025, "method": "x"}, "1 to 1,024 characters", None),
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
    *(
        ({"id": 1, "error": {"code": code, "message": "x"}}, "integer as code", None)
        for code in ("1", 1.0, True)
    ),
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
    assert parse_message({"jsonrpc": "2.0", **members}, lenient=lenient) == message


@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_no_message_is_refused(lenient: bool) -> None:
    envelopes = [
        ({"jsonrpc": "2.0", **members}, sentence, request_id)
        for members, sentence, request_id in REFUSED_MEMBERS
    ]
    for value, sentence, request_id in [*REFUSED, *envelopes]:
        with pytest.raises(InvalidRequest) as caught:
            parse_message(value, lenient=lenient)
        error = caught.value
        assert sentence in error.message, value
        assert error.message.endswith("."), value
        assert error.request_id == request_id, value
        assert (error.code, error.http_status) == (-32600, 400), value


def test_lenient_ignores_unknown_members() -> None:
    for members, sentence, message in REFUSED_UNLESS_LENIENT:
        value = {"jsonrpc": "2.0", **members}
        assert parse_message(value, lenient=True) == message
        with pytest.raises(InvalidRequest, match=sentence):
            parse_message(value)


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
    two: JsonObject = {"jsonrpc": "2.0"}
    told = error_message("a", error, null_id=False, code=-32002)
    assert told == {**two, "id": "a", "error": {"code": -32002, **body}}
    told = error_message(None, error, null_id=False)
    assert told == {**two, "error": {"code": -32602, **body}}
    told = error_message(None, InvalidParams("No."), null_id=True)
    assert told == {**two, "id": None, "error": {"code": -32602, "message": "No."}}
    assert error_message(0, InvalidParams("No."), null_id=False)["id"] == 0


ids = st.integers(-LARGEST, LARGEST) | st.text(min_size=1)
params = st.dictionaries(st.text(), st.integers() | st.text() | st.none())


@given(ids, st.text(), st.none() | params)
def test_messages_come_back(
    request_id: int | str, method: str, sent: JsonObject | None
) -> None:
    some: JsonObject = sent or {}
    asked = request_message(request_id, method, sent)
    assert ("params" in asked) == (sent is not None)
    for message, read in (
        (asked, Request(request_id, method, some)),
        (notification_message(method, sent), Notification(method, some)),
        (result_message(request_id, some), Reply(request_id, some, None)),
    ):
        assert parse_message(jsonrpc.read(jsonrpc.write(message))) == read


# -- call template ---------------------------------------------------------------------


META: Final[dict[str, Any]] = {"io.example/client": {"name": "a", "version": "1"}}
PARAMS: Final[dict[str, Any]] = {"name": "add", "arguments": {"a": 1}, "_meta": META}
RPC: Final = {"jsonrpc": "2.0"}
METHOD: Final = {"method": "tools/call"}
ID_FIRST: Final[dict[str, Any]] = {**RPC, "id": 1, **METHOD, "params": PARAMS}
ID_LAST: Final = {**METHOD, "params": PARAMS, **RPC, "id": 1}
ID_AMIDST: Final = {"params": PARAMS, "id": 1, **RPC, **METHOD}
MESSAGES: Final = (ID_FIRST, ID_LAST, ID_AMIDST)


def written(message: dict[str, Any], number: Any, arguments: Any) -> bytes:
    params = {**message["params"], "arguments": arguments}
    return jsonrpc.write({**message, "id": number, "params": params})


@pytest.mark.parametrize("message", MESSAGES)
def test_the_id_and_the_arguments_are_read(message: dict[str, Any]) -> None:
    template = CallTemplate(message)
    for number in (1, 22, 0, 10, 10**MAX_ID_DIGITS - 1, 5):
        for arguments in ({"a": 2}, {}, {"a": {"b": ["}", ',"_meta":{', "ü"]}}):
            body = written(message, number, arguments)
            assert template.read(body) == (b"%d" % number, arguments)
    assert template.copy_of_meta() == META
    assert template.copy_of_meta() is not template.copy_of_meta()


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    "number", [10**MAX_ID_DIGITS, -1, 1.0, True, None, "1", [1], {"a": 1}]
)
def test_other_ids_are_not(message: dict[str, Any], number: object) -> None:
    assert CallTemplate(message).read(written(message, number, {})) is None


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    "number", [b"0777", b"1e10", b"9.50", b"true", b"-123", b"1 2 "]
)
def test_other_ids_of_the_length_that_is_expected(
    message: dict[str, Any], number: bytes
) -> None:
    template = CallTemplate(message)
    usual = written(message, 1234, {})
    assert template.read(usual) == (b"1234", {})
    assert template.read(usual.replace(b'"id":1234', b'"id":' + number)) is None
    assert template.read(usual) == (b"1234", {})


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("arguments", [None, [], "x", 1, True])
def test_other_arguments_are_not(message: dict[str, Any], arguments: object) -> None:
    assert CallTemplate(message).read(written(message, 1, arguments)) is None


def test_a_text_in_a_gap_is_none_of_the_template() -> None:
    """The characters that mark gaps may stand in a text, where they are escaped."""
    odd = {**PARAMS, "_meta": {"\0": "\1"}, "name": "\0\1"}
    message = {**ID_FIRST, "params": odd}
    assert CallTemplate(message).read(written(message, 3, {"x": 1})) == (b"3", {"x": 1})


@pytest.mark.parametrize("more", [{}, {"_meta": None}, {"_meta": {}}])
def test_without_a_meta(more: dict[str, Any]) -> None:
    message = {**ID_FIRST, "params": {"name": "add", "arguments": {}, **more}}
    template = CallTemplate(message)
    assert template.read(written(message, 1, {"a": 1})) == (b"1", {"a": 1})
    assert template.copy_of_meta() == {}
    assert len(template) < len(CallTemplate(ID_FIRST))


def test_what_cannot_be_written_has_no_template() -> None:
    with pytest.raises(JSONEncodeError):
        CallTemplate({**ID_FIRST, "params": {**PARAMS, "_meta": {"a": 2**70}}})


_PIECES: Final = st.sampled_from(
    [
        *(b"1", b"0", b"01", b"{}", b'{"a":1}', b'{"a":1,"a":2}', b"[", b"]", b"}"),
        *(b",", b'"', b"\\", b" ", b'"id":', b"\0", b"\1", b"null", b"\xff", b"1e5"),
        *(b'"_meta":{}', b'"params":{', b'"arguments":', b'"jsonrpc":"2.0"'),
    ]
)


@given(st.data())
def test_what_is_read_is_what_the_whole_body_says(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(MESSAGES))
    template = CallTemplate(message)
    body = written(message, data.draw(st.integers(0, 99)), {"a": [1, {"b": "}"}]})
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = start + data.draw(st.integers(0, 12))
        body = body[:start] + data.draw(_PIECES | st.binary(max_size=4)) + body[end:]
    found = template.read(body)
    try:
        whole: Any = jsonrpc.read(body)
    except ParseError:
        assert found is None
        return
    if found is not None:
        number, arguments = found
        params = {**message["params"], "arguments": arguments}
        expected = {**message, "id": int(number), "params": params}
        assert json.dumps(whole) == json.dumps(expected)
