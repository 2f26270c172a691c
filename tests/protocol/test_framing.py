"""Tests of `mcp_app/protocol/framing.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import framing, jsonrpc
from mcp_app.protocol.framing import Broken, Lines, encode_line

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
    sent = b"".join(encode_line(each) for each in messages)
    lines, found = Lines(1_000), list[bytes | Broken]()
    for start in range(0, len(sent), size):
        found += lines.feed(sent[start : start + size])
    assert found == messages


@given(st.recursive(st.text() | st.integers(), st.lists))
def test_a_message_is_one_line(value: object) -> None:
    """Also one that somebody stored with line breaks between its tokens."""
    for text in (json.dumps(value, indent=1), jsonrpc.write(value).decode()):
        found = encode_line(text.replace("\n", "\r\n").encode())
        assert found.count(b"\n") == 1
        assert b"\r" not in found
        assert json.loads(found) == value


# -- sse -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    type: str
    data: str
    last_id: str


def events(stream: bytes) -> tuple[list[Event], int | None]:
    """What the WHATWG's algorithm makes of a stream: its events, and the retry time."""
    found: list[Event] = []
    kind, data, last_id, retry = "", "", "", None
    for text_line in stream.decode().split("\n"):
        name, _, value = text_line.partition(":")
        value = value.removeprefix(" ")
        if text_line == "":
            if data:
                found.append(Event(kind or "message", data.removesuffix("\n"), last_id))
            kind, data = "", ""
        elif name == "event":
            kind = value
        elif name == "data":
            data += value + "\n"
        elif name == "id" and "\0" not in value:
            last_id = value
        elif name == "retry" and value.isdecimal():
            retry = int(value)
    return found, retry


STREAMS = [
    (framing.message_event(b"{}"), b"event: message\ndata: {}\n\n"),
    (
        framing.message_event(b"{}", event_id="s.1"),
        b"id: s.1\nevent: message\ndata: {}\n\n",
    ),
    (
        framing.message_event(b"{}", event_id="s.1", retry_ms=0),
        b"id: s.1\nretry: 0\nevent: message\ndata: {}\n\n",
    ),
    (
        framing.message_event(b"{}", retry_ms=5),
        b"retry: 5\nevent: message\ndata: {}\n\n",
    ),
    (framing.priming_event("s.0"), b"id: s.0\ndata: \n\n"),
    (framing.priming_event("s.0", 250), b"id: s.0\nretry: 250\ndata: \n\n"),
    (
        framing.endpoint_event("/mcp/messages?s=1"),
        b"event: endpoint\ndata: /mcp/messages?s=1\n\n",
    ),
    (framing.comment_line(), b":\n\n"),
    (framing.comment_line("still here"), b": still here\n\n"),
    (framing.retry_field(2000), b"retry: 2000\n\n"),
]


@pytest.mark.parametrize(("stream", "text"), STREAMS)
def test_every_kind_of_event_has_one_form(stream: bytes, text: bytes) -> None:
    assert stream == text


def test_a_stream_is_read_by_the_standards_algorithm() -> None:
    stream = b"".join(stream for stream, _ in STREAMS)
    assert events(stream) == (
        [
            *(Event("message", "{}", ""), Event("message", "{}", "s.1")),
            *(Event("message", "{}", "s.1"), Event("message", "{}", "s.1")),
            *(Event("message", "", "s.0"), Event("message", "", "s.0")),
            Event("endpoint", "/mcp/messages?s=1", "s.0"),
        ],
        2000,
    )


@given(st.dictionaries(st.text(), st.text()))
def test_any_message_comes_back_whole(value: dict[str, str]) -> None:
    stream = framing.message_event(jsonrpc.write(value), event_id="x.1")
    (event,), _ = events(stream)
    assert json.loads(event.data) == value
    # Some clients parse every `data:` line by itself.
    (line,) = [line for line in stream.split(b"\n") if line.startswith(b"data:")]
    assert json.loads(line.removeprefix(b"data:")) == value


@pytest.mark.parametrize("data", [b"{\n}", b"{\r}", b"{}\n"])
def test_data_with_a_line_break_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="one line"):
        framing.message_event(data)


@pytest.mark.parametrize("text", ["a\nb", "a\r", "\0"])
def test_fields_with_a_line_break_or_nul_are_refused(text: str) -> None:
    for make in (framing.priming_event, framing.comment_line, framing.endpoint_event):
        with pytest.raises(ValueError, match="one line without NUL"):
            make(text)
    with pytest.raises(ValueError, match="one line without NUL"):
        framing.message_event(b"{}", event_id=text)


def test_a_retry_time_is_not_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative; it is -1"):
        framing.retry_field(-1)
