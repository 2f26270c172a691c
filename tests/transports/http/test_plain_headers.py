"""What headers decide is kept by those that are read, and only for so many."""

from __future__ import annotations

import pytest

from mcp_app.process.runtime import Process
from mcp_app.transports.http.plain_headers import (
    MAX_CACHED_BYTES,
    MAX_COMBINATIONS,
    KnownHeaders,
)
from tests.transports.http.differing import HEADERS, META, PREFIX

RAW = {name.encode(): value.encode() for name, value in HEADERS}


@pytest.fixture
def kept() -> KnownHeaders:
    return KnownHeaders()


async def test_headers_that_are_not_read_do_not_matter(
    kept: KnownHeaders, process: Process
) -> None:
    first = kept.of(RAW, process)
    assert first is not None
    for number in range(MAX_COMBINATIONS * 2):
        raw = {**RAW, b"traceparent": b"%d" % number, b"mcp-name": b"%d" % number}
        assert kept.of(raw, process) is first
    assert len(kept) == 1


async def test_only_so_many_are_kept(kept: KnownHeaders, process: Process) -> None:
    for number in range(MAX_COMBINATIONS * 3):
        raw = {**RAW, b"accept": b"application/json;level=%d" % number}
        assert kept.of(raw, process) is not None
        assert len(kept) <= MAX_COMBINATIONS


async def test_long_ones_are_not_kept(kept: KnownHeaders, process: Process) -> None:
    raw = {**RAW, b"accept": b"application/json;level=" + b"1" * MAX_CACHED_BYTES}
    found = kept.of(raw, process)
    assert found is not None
    assert kept.of(raw, process) is not found
    assert len(kept) == 0


async def test_what_changes_makes_it_forget(
    kept: KnownHeaders, process: Process
) -> None:
    first = kept.of(RAW, process)
    process.generation += 1
    assert kept.of(RAW, process) is not first
    assert len(kept) == 1


async def test_the_last_meta_is_kept(kept: KnownHeaders, process: Process) -> None:
    headers = kept.of(RAW, process)
    assert headers is not None
    own = dict(META)
    assert headers.accept_meta(own, 100)
    assert headers.meta is own
    client = headers.client
    for further in ({"progressToken": 1}, {"traceparent": "00-1-1-01"}):
        assert headers.accept_meta({**META, **further}, 100)
        assert headers.client is client
    other = {**META, f"{PREFIX}clientInfo": {"name": "b", "version": "2"}}
    assert headers.accept_meta(other, 100)
    assert headers.client is not client
    for _ in range(2):
        client = headers.client
        assert headers.accept_meta(own, MAX_CACHED_BYTES + 1)
        assert headers.client is not client
    for wrong in (None, {}, {**META, f"{PREFIX}logLevel": "loud"}):
        assert not is_plain(headers, wrong)


def is_plain(headers: object, meta: object) -> bool:
    try:
        return bool(headers.accept_meta(meta, 100))  # type: ignore[attr-defined]
    except (AttributeError, KeyError, TypeError):
        return False
