"""Bodies of answers: inflated and counted while they come, never beyond a bound."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from typing import Final

from mcp_app.egress.errors import TooLarge, Unreadable

_GZIP: Final = zlib.MAX_WBITS | 16
_PIECE: Final = 256 * 1024
"""So many bytes are inflated at once."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, most: int) -> bytes:
    """Return a body of at most so many bytes; raise `TooLarge` or `Unreadable`.

    `encoding` is the answer's Content-Encoding: nothing, identity, gzip or deflate
    (RFC 9110, section 8.4.1).
    """
    decode = _decoder(encoding.strip().lower())
    body, size = bytearray(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        for piece in decode(chunk):
            body += piece
            if len(body) > most:
                raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"The answer is larger than {most:,} bytes.", sent=True)


def _decoder(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    make = _DECODERS.get(encoding)
    if make is None:
        said = f"The answer has the Content-Encoding {encoding[:40]!r}."
        raise Unreadable(said, sent=True)
    return make()


def _identity() -> Callable[[bytes], Iterator[bytes]]:
    return lambda chunk: iter((chunk,))


class _Inflater:
    """Inflates piece by piece, so that a small body never becomes a large one."""

    def __init__(self, *window_bits: int) -> None:
        self._window_bits = window_bits
        self._inflate = zlib.decompressobj(window_bits[0])
        self._first = True

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            yield self._piece(chunk)
            chunk = self._inflate.unconsumed_tail
            if self._inflate.eof:
                # A file of gzip may have several members (RFC 1952, section 2.2).
                chunk = self._inflate.unused_data
                self._inflate = zlib.decompressobj(self._window_bits[0])

    def _piece(self, chunk: bytes) -> bytes:
        first, self._first = self._first, False
        for window_bits in self._window_bits if first else ():
            attempt = zlib.decompressobj(window_bits)
            try:
                piece = attempt.decompress(chunk, _PIECE)
            except zlib.error:
                continue
            self._inflate = attempt
            return piece
        try:
            return self._inflate.decompress(chunk, _PIECE)
        except zlib.error:
            said = "The answer is broken: it cannot be decompressed."
            raise Unreadable(said, sent=True) from None


_DECODERS: Final[Mapping[str, Callable[[], Callable[[bytes], Iterator[bytes]]]]] = {
    "": _identity,
    "identity": _identity,
    "gzip": lambda: _Inflater(_GZIP),
    "x-gzip": lambda: _Inflater(_GZIP),
    # Some send it without the wrapper that RFC 9110 asks for.
    "deflate": lambda: _Inflater(zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
