"""What a template reads is what the whole body says, and nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import JSONEncodeError

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import MOST_DIGITS, CallTemplate
from mcp_app.protocol.errors import ParseError

META: Final[dict[str, Any]] = {"io.example/client": {"name": "a", "version": "1"}}
PARAMS: Final[dict[str, Any]] = {"name": "add", "arguments": {"a": 1}, "_meta": META}
ID_FIRST: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": PARAMS,
}
ID_LAST: Final = {
    "method": "tools/call",
    "params": PARAMS,
    "jsonrpc": "2.0",
    "id": 1,
}
ID_AMIDST: Final = {"params": PARAMS, "id": 1, "jsonrpc": "2.0", "method": "tools/call"}
MESSAGES: Final = (ID_FIRST, ID_LAST, ID_AMIDST)


def written(message: dict[str, Any], number: Any, arguments: Any) -> bytes:
    """Return the message with another id and other arguments."""
    params = {**message["params"], "arguments": arguments}
    return jsonrpc.write({**message, "id": number, "params": params})


@pytest.mark.parametrize("message", MESSAGES)
def test_the_id_and_the_arguments_are_read(message: dict[str, Any]) -> None:
    template = CallTemplate(message)
    for number in (1, 22, 0, 10, 10**MOST_DIGITS - 1, 5):
        for arguments in ({"a": 2}, {}, {"a": {"b": ["}", ',"_meta":{', "ü"]}}):
            body = written(message, number, arguments)
            assert template.read(body) == (b"%d" % number, arguments)
    assert template.meta() == META
    assert template.meta() is not template.meta()


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    "number", [10**MOST_DIGITS, -1, 1.0, True, None, "1", [1], {"a": 1}]
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
    assert template.meta() == {}
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
