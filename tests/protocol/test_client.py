"""What a client reads of a stream of events."""

from __future__ import annotations

from mcp_app.protocol.client import EventReader

STREAM = (
    b": a comment\n\nevent: message\ndata: one\n\n"
    b"data:two\r\ndata:  lines\r\n\r\n"
    b"id: 3\rdata\rdata: three\r\r"
    b"retry: 5\n\n"
    b"data: \xc3\xa9\r\ndata:\r\r\ndata: cut off"
)
EVENTS = [b"one", b"two\n lines", b"\nthree", "é\n".encode()]


def test_events_may_be_cut_anywhere() -> None:
    cuts = [[STREAM[:at], b"", STREAM[at:]] for at in range(len(STREAM) + 1)]
    for pieces in (*cuts, [bytes([each]) for each in STREAM]):
        reader = EventReader()
        assert [
            each for piece in pieces for each in reader.read_events(piece)
        ] == EVENTS
