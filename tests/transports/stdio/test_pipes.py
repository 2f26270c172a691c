"""Standard input and output, by the descriptors of this test."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_app.transports.stdio import pipes
from mcp_app.transports.stdio.pipes import AHEAD, CHUNK, Input, Output

LONG = b"x" * 300_000
"""More than a pipe takes."""


@pytest.fixture(params=[os.pipe, lambda: _detached(socket.socketpair())])
def ends(request: pytest.FixtureRequest) -> Iterator[list[int]]:
    """Return the ends to read from and to write to; a test closes by `close`."""
    found: list[int] = list(request.param())
    yield found
    for each in found:
        os.close(each)


def _detached(pair: tuple[socket.socket, socket.socket]) -> tuple[int, int]:
    first, second = pair
    return first.detach(), second.detach()


async def everything(source: Input) -> bytes:
    found = b""
    while True:
        data, _ = await source.next_chunk()
        found += data
        if not data:
            return found


def nothing() -> None:
    """Whoever is told does nothing."""


async def test_input_to_its_end(ends: list[int]) -> None:
    ended = asyncio.Event()
    source = Input(ends[0], ended.set)
    writing = asyncio.ensure_future(asyncio.to_thread(_write_all, ends[1], LONG))
    found = b""
    while len(found) < len(LONG):
        found += (await source.next_chunk())[0]
    await writing
    assert found == LONG
    os.close(ends.pop())
    assert await everything(source) == b""
    await ended.wait()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


async def test_little_is_read_ahead(ends: list[int]) -> None:
    """A client that sends more than is taken waits, as its pipe makes it."""
    source = Input(ends[0], nothing)
    writing = asyncio.ensure_future(
        asyncio.to_thread(_write_all, ends[1], LONG * (AHEAD + 2))
    )
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert source._chunks.qsize() <= AHEAD
    assert not writing.done()
    left = len(LONG) * (AHEAD + 2)
    while left:
        data, _ = await source.next_chunk()
        assert len(data) <= CHUNK
        left -= len(data)
    await writing


async def test_the_end_is_noticed_although_nothing_is_taken(ends: list[int]) -> None:
    ended = asyncio.Event()
    source = Input(ends[0], ended.set)
    while source._watched:
        os.write(ends[1], b"x")
        await asyncio.sleep(0)
    assert not ended.is_set()
    os.close(ends.pop())
    async with asyncio.timeout(60):
        await ended.wait()
    assert source._chunks.qsize() == AHEAD
    assert set(await everything(source)) == set(b"x")


async def test_output_in_its_order(ends: list[int]) -> None:
    """Short messages are written at once, unless a long one is on its way."""
    output = Output(ends[1], nothing)
    sent = [b"1", LONG, b"2", b"3\n4"]
    for each in sent:
        output.write_message(each)
    source = Input(ends[0], nothing)
    expected = b"1\n" + LONG + b"\n2\n3 4\n"
    found = b""
    while len(found) < len(expected):
        found += (await source.next_chunk())[0]
    assert found == expected
    await output.wait_until_written()
    output.write_message(b"5")
    assert (await source.next_chunk())[0] == b"5\n"


@pytest.mark.parametrize("message", [b"short", LONG])
async def test_nobody_reads(ends: list[int], message: bytes) -> None:
    os.close(ends.pop(0))
    broken = asyncio.Event()
    output = Output(ends[0], broken.set)
    output.write_message(message)
    await broken.wait()
    output.write_message(message)
    await output.wait_until_written()


async def test_a_reader_who_takes_nothing_is_given_up(
    ends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "MAX_QUEUED_BYTES", 1_000_000)
    broken = asyncio.Event()
    output = Output(ends[1], broken.set)
    for _ in range(10):
        output.write_message(LONG)
    assert broken.is_set()


async def test_output_that_does_not_block(ends: list[int]) -> None:
    """Whoever has the other end, or the same one, may have made it so."""
    os.set_blocking(ends[1], False)
    broken = asyncio.Event()
    output = Output(ends[1], broken.set)
    output.write_message(LONG)
    output.write_message(b"last")
    source, found = Input(ends[0], nothing), b""
    while not found.endswith(b"last\n") and not broken.is_set():
        found += (await source.next_chunk())[0]
    assert found == LONG + b"\nlast\n"


async def test_input_that_another_was_quicker_to_read(ends: list[int]) -> None:
    os.set_blocking(ends[0], False)
    source = Input(ends[0], nothing)
    for _ in range(AHEAD + 1):
        # What the loop does where it was told that something is there.
        source._read_ready_chunk()
    os.write(ends[1], b"line")
    assert (await source.next_chunk())[0] == b"line"


async def test_output_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "written"
    with path.open("wb") as file:
        output = Output(file.fileno(), nothing)
        output.write_message(b"{}")
        await output.wait_until_written()
    assert path.read_bytes() == b"{}\n"
