"""Bodies of answers: inflated and counted while they come, never beyond a bound."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from typing import Final

from mcp_app.egress.errors import TooLarge, Unreadable

_GZIP: Final = zlib.MAX_WBITS | 16
_DEFLATE: Final = 8
_PIECE: Final = 256 * 1024
"""So many bytes are inflated at once."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str, most: int) -> bytes:
    """Return a body of at most so many bytes; raise `TooLarge` or `Unreadable`.

    `encoding` is the answer's Content-Encoding: nothing, identity, gzip or deflate
    (RFC 9110, section 8.4.1).
    """
    decode = _decoder(encoding.strip().lower())
    body, size = bytearray(), 0
    async for chunk in _with_end(chunks):
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        for piece in decode(chunk):
            body += piece
            if len(body) > most:
                raise _too_large(most)
    return bytes(body)


async def _with_end(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Give the chunks, and an empty one at the end."""
    async for chunk in chunks:
        if chunk:
            yield chunk
    yield b""


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

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._inflate = zlib.decompressobj()
        self._began = False

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        """Give the pieces of a chunk; an empty one is the end."""
        try:
            yield from self._pieces(chunk) if chunk else self._rest()
        except zlib.error:
            said = "The answer is broken: it cannot be decompressed."
            raise Unreadable(said, sent=True) from None

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if not self._began:
                self._inflate = zlib.decompressobj(self._window_bits or _window(chunk))
                self._began = True
            elif self._inflate.eof:
                # A file of gzip may have several members (RFC 1952, section 2.2), and
                # some end it with bytes of zero.
                chunk = chunk.lstrip(b"\0")
                self._began = not chunk
                continue
            yield self._inflate.decompress(chunk, _PIECE)
            chunk = self._inflate.unconsumed_tail or self._inflate.unused_data

    def _rest(self) -> Iterator[bytes]:
        if self._began and not self._inflate.eof:
            yield self._inflate.flush()
            if not self._inflate.eof:
                raise zlib.error("It was cut off.")


def _window(chunk: bytes) -> int:
    """Return how deflate is to be read.

    RFC 9110 asks for the wrapper of zlib, whose first byte ends with 8 (RFC 1950,
    section 2.2); some send it without.
    """
    return zlib.MAX_WBITS if chunk[0] & 0x0F == _DEFLATE else -zlib.MAX_WBITS


_DECODERS: Final[Mapping[str, Callable[[], Callable[[bytes], Iterator[bytes]]]]] = {
    "": _identity,
    "identity": _identity,
    "gzip": lambda: _Inflater(_GZIP),
    "x-gzip": lambda: _Inflater(_GZIP),
    "deflate": lambda: _Inflater(0),
}
