"""Newline-delimited messages: what is one line, and what comes instead."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.framing import Broken, Lines, line

LONG = Broken.TOO_LONG


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([b'{"a":1}\n{"b":2}\n'], [b'{"a":1}', b'{"b":2}']),
        ([b'{"a"', b":1}", b"\n"], [b'{"a":1}']),
        ([b"{}\r\n", b"\n", b"  \t\r\n", b" [] \n"], [b"{}", b"[]"]),
        ([b"{}", b"\n[]"], [b"{}"]),
        ([b"1" * 10 + b"\n"], [b"1" * 10]),
        ([b"1" * 11 + b"\n{}\n"], [LONG, b"{}"]),
        ([b"1" * 7, b"1" * 7, b"1" * 7 + b"\n{}\n"], [LONG, b"{}"]),
        ([b"1" * 11, b"\n", b"2" * 11, b"\n"], [LONG, LONG]),
    ],
)
def test_lines(parts: list[bytes], found: list[bytes | Broken]) -> None:
    lines = Lines(10)
    assert [each for part in parts for each in lines.feed(part)] == found


def test_the_last_line_needs_no_end() -> None:
    lines = Lines(10)
    assert lines.feed(b"{}\n[]") == [b"{}"]
    assert lines.end() == [b"[]"]
    assert lines.end() == []


@given(
    st.lists(st.text(max_size=40).map(lambda text: jsonrpc.write({"": text}))),
    st.integers(1, 50),
)
def test_messages_come_as_they_were_sent(messages: list[bytes], size: int) -> None:
    sent = b"".join(line(each) for each in messages)
    lines, found = Lines(1_000), list[bytes | Broken]()
    for start in range(0, len(sent), size):
        found += lines.feed(sent[start : start + size])
    assert found == messages


@given(st.recursive(st.text() | st.integers(), st.lists))
def test_a_message_is_one_line(value: object) -> None:
    """Also one that somebody stored with line breaks between its tokens."""
    for text in (json.dumps(value, indent=1), jsonrpc.write(value).decode()):
        found = line(text.replace("\n", "\r\n").encode())
        assert found.count(b"\n") == 1
        assert b"\r" not in found
        assert json.loads(found) == value
