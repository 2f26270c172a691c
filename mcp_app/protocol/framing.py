"""How messages are separated: by lines (stdio), or as server-sent events (HTTP)."""

from __future__ import annotations

from enum import Enum

# -- lines -----------------------------------------------------------------------------
# Newline-delimited messages (basic/transports, "stdio"), as bytes.


class Broken(Enum):
    """A value in place of a line that could not be read."""

    TOO_LONG = "too long"


class Lines:
    """Splits bytes into lines; a line that is too long is dropped."""

    def __init__(self, limit: int) -> None:
        """Take lines of at most `limit` bytes."""
        self._limit = limit
        self._begun = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> list[bytes | Broken]:
        """Return the complete lines, without their line ends.

        Blank lines are left out; a line that is too long is reported when it ends.
        """
        *line_ends, unfinished = data.split(b"\n")
        lines = [line for end in line_ends if (line := self._complete_line(end))]
        self._append_part(unfinished)
        return lines

    def end(self) -> list[bytes | Broken]:
        """Return the last line, if no line end followed it."""
        return self.feed(b"\n")

    def _append_part(self, part: bytes) -> None:
        if self._too_long:
            return
        self._begun += part
        if len(self._begun) > self._limit:
            self._too_long = True
            self._begun.clear()

    def _complete_line(self, end: bytes) -> bytes | Broken:
        self._append_part(end)
        if self._too_long:
            self._too_long = False
            return Broken.TOO_LONG
        # A line that came in one part is that part: it need not be copied.
        line = bytes(self._begun) if len(self._begun) != len(end) else end
        self._begun.clear()
        return line.strip(b" \t\r")


def encode_line(message: bytes) -> bytes:
    """Return a JSON text as one line.

    A line break in JSON is only white space, because strings have it escaped; so a
    blank can replace it.
    """
    if b"\n" in message or b"\r" in message:
        message = message.replace(b"\n", b" ").replace(b"\r", b" ")
    return message + b"\n"


# -- sse -------------------------------------------------------------------------------
# Server-sent events (the WHATWG event stream format), as bytes.
#
# A message is one `data:` line, because some clients parse JSON line by line.


def message_event(
    data: bytes, *, event_id: str | None = None, retry_ms: int | None = None
) -> bytes:
    """Return one JSON text as an event; ValueError if `data` holds a line break.

    The event type is sent, although `message` is the default: 2024-11-05 names it, and
    a client may compare it without knowing the default.
    """
    if b"\n" in data or b"\r" in data:
        raise ValueError(
            "The data of an event must be one line, but it has a line break."
        )
    event = b"event: message\ndata: " + data + b"\n\n"
    if event_id is None and retry_ms is None:
        return event
    return _event_fields(event_id, retry_ms) + event


def priming_event(event_id: str, retry_ms: int | None = None) -> bytes:
    """Return the first event of a resumable stream: an id to resume with, and no data.

    It has a `data:` line, because clients ignore an event without one.
    """
    return _event_fields(event_id, retry_ms) + b"data: \n\n"


def endpoint_event(uri: str) -> bytes:
    """Return the first event of HTTP+SSE (2024-11-05): the URL to post messages to."""
    return b"event: endpoint\ndata: " + _encode_field(uri) + b"\n\n"


def comment_line(text: str = "") -> bytes:
    """Return a comment, which clients ignore: the heartbeat."""
    return b":" + (b" " + _encode_field(text) if text else b"") + b"\n\n"


def retry_field(milliseconds: int) -> bytes:
    """Return the field that says how long a client waits before it reconnects."""
    return _event_fields(None, milliseconds) + b"\n"


def _event_fields(event_id: str | None, retry_ms: int | None) -> bytes:
    head = b""
    if event_id is not None:
        head += b"id: " + _encode_field(event_id) + b"\n"
    if retry_ms is not None:
        if retry_ms < 0:
            raise ValueError(f"A retry time must not be negative; it is {retry_ms}.")
        head += b"retry: %d\n" % retry_ms
    return head


def _encode_field(text: str) -> bytes:
    # A client ignores an id that holds a NUL.
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError(f"A field of an event must be one line without NUL: {text!r}.")
    return text.encode()
