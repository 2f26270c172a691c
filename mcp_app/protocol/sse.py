"""Server-sent events (the WHATWG event stream format), as bytes.

A message is one `data:` line, because some clients parse JSON line by line.
"""

from __future__ import annotations


def message(
    data: bytes, *, event_id: str | None = None, retry_ms: int | None = None
) -> bytes:
    """One JSON text as an event; ValueError where `data` holds a line break.

    The event type is written out: 2024-11-05 names it (`message`), and a client
    that compares it need not know the default.
    """
    if b"\n" in data or b"\r" in data:
        raise ValueError(
            "The data of an event must be one line, but it has a line break."
        )
    if event_id is None and retry_ms is None:
        return b"event: message\ndata: " + data + b"\n\n"
    return _fields(event_id, retry_ms) + b"event: message\ndata: " + data + b"\n\n"


def priming(event_id: str, retry_ms: int | None = None) -> bytes:
    """The first event of a resumable stream: an id to come back with, and no data.

    It has a `data:` line, because an event without one is never dispatched.
    """
    return _fields(event_id, retry_ms) + b"data: \n\n"


def endpoint(uri: str) -> bytes:
    """The first event of HTTP+SSE (2024-11-05): where messages are to be posted."""
    return b"event: endpoint\ndata: " + _line(uri) + b"\n\n"


def comment(text: str = "") -> bytes:
    """A line that carries nothing: the heartbeat."""
    return b":" + (b" " + _line(text) if text else b"") + b"\n\n"


def retry(milliseconds: int) -> bytes:
    """How long a client is to wait before it comes back."""
    return _fields(None, milliseconds) + b"\n"


def _fields(event_id: str | None, retry_ms: int | None) -> bytes:
    head = b""
    if event_id is not None:
        head += b"id: " + _line(event_id) + b"\n"
    if retry_ms is not None:
        if retry_ms < 0:
            raise ValueError(f"A retry time must not be negative; it is {retry_ms}.")
        head += b"retry: %d\n" % retry_ms
    return head


def _line(text: str) -> bytes:
    # A NUL makes a client ignore the id that holds it.
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError(f"A field of an event must be one line without NUL: {text!r}.")
    return text.encode()
