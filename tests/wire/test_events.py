"""The reader of server-sent events."""

from __future__ import annotations

import pytest

from tests.wire.events import Event, EventReader

STREAMS: list[tuple[bytes, list[Event]]] = [
    (b"data: {}\n\n", [Event(data=["{}"])]),
    (b"data:{}\r\n\r\n", [Event(data=["{}"])]),
    (b"event: endpoint\ndata: /x?a=b\n\n", [Event(name="endpoint", data=["/x?a=b"])]),
    (b"id: 7\nretry: 100\ndata:\n\n", [Event(data=[""], id="7")]),
    (b": a comment\n\n", []),
    (b"id: 7\n\n", []),
    (b"data: a\ndata: b\n\ndata: c\n\n", [Event(data=["a", "b"]), Event(data=["c"])]),
    (b"data: never ended\n", []),
    ("data: \N{PARROT}\n\n".encode(), [Event(data=["\N{PARROT}"])]),
]


@pytest.mark.parametrize(("stream", "events"), STREAMS)
def test_whole(stream: bytes, events: list[Event]) -> None:
    assert list(EventReader().feed(stream)) == events


@pytest.mark.parametrize(("stream", "events"), STREAMS)
def test_byte_by_byte(stream: bytes, events: list[Event]) -> None:
    reader = EventReader()
    pieces = [stream[place : place + 1] for place in range(len(stream))]
    assert [event for piece in pieces for event in reader.feed(piece)] == events


def test_other_encodings_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        list(EventReader().feed(b"data: \xff\n\n"))
