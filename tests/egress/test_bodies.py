"""Bodies are inflated within bounds."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from mcp_app.conf import MIB
from mcp_app.egress.client import _PIECE, read_body
from mcp_app.egress.connecting import TooLarge, Unreadable

TEXT = b"What was asked for. " * 500


async def chunked(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def read(body: bytes, encoding: str = "", most: int = MIB) -> bytes:
    return await read_body(chunked(body), encoding, most)


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def raw_deflate(body: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(body) + deflate.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzipped(TEXT)),
        (" GZip ", gzipped(TEXT)),
        ("x-gzip", gzipped(TEXT[:7]) + gzipped(TEXT[7:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("gzip", gzipped(TEXT) + bytes(2_500)),
        ("gzip", gzipped(TEXT[:7]) + bytes(5) + gzipped(TEXT[7:])),
    ],
)
async def test_bodies(encoding: str, body: bytes) -> None:
    assert await read(body, encoding) == TEXT
    assert await read_body(chunked(body, 1), encoding, MIB) == TEXT
    assert await read(body, encoding, len(TEXT)) == TEXT
    with pytest.raises(TooLarge):
        await read(body, encoding, len(TEXT) - 1)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
async def test_codings_that_nobody_asked_for(encoding: str) -> None:
    with pytest.raises(Unreadable, match=encoding):
        await read(TEXT, encoding)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_what_is_not_compressed(encoding: str) -> None:
    with pytest.raises(Unreadable, match="cannot be decompressed"):
        await read(TEXT, encoding)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzipped(TEXT)),
        ("gzip", gzipped(TEXT) + gzipped(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
)
@pytest.mark.parametrize("missing", [1, 4, 12])
async def test_a_body_that_was_cut_off(
    encoding: str, body: bytes, missing: int
) -> None:
    with pytest.raises(Unreadable, match="cannot be decompressed"):
        await read(body[:-missing], encoding)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ""])
async def test_no_body(encoding: str) -> None:
    assert await read(b"", encoding) == b""


async def test_a_piece_that_ends_where_the_input_does() -> None:
    """The last bytes of the input stand for more than one piece can hold."""
    size = _PIECE + 21
    assert len(await read(raw_deflate(bytes(size)), "deflate")) == size
