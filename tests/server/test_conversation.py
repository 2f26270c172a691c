"""The rules by themselves; what each transport makes of them is in tests/transports."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.protocol.errors import InvalidRequest
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.server import conversation
from mcp_app.server.conversation import MixedEras, read_batch

BATCHED: Final = STATEFUL["2025-03-26"]
PING: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE: Final[dict[str, Any]] = {"jsonrpc": "2.0", "method": "notifications/any"}


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_what_needs_no_session(method: str) -> None:
    conversation.check_turn(method, None)


@pytest.mark.parametrize("method", ["tools/list", "nothing", ""])
def test_what_needs_one(method: str) -> None:
    conversation.check_turn(method, BATCHED)
    with pytest.raises(InvalidRequest, match="initialize first"):
        conversation.check_turn(method, None)


def test_initialize_comes_once() -> None:
    with pytest.raises(InvalidRequest, match="initialized already"):
        conversation.check_turn("initialize", BATCHED)


def test_an_id_that_runs() -> None:
    conversation.check_id(1, {"1"})
    with pytest.raises(InvalidRequest, match="id '1' is running"):
        conversation.check_id("1", {"1"})


def test_the_messages_of_a_batch() -> None:
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    batch = read_batch([NOTE, PING], BATCHED, {2}, most=2, lenient=False)
    assert [each.id for each in batch.requests] == [1]
    assert len(batch.others) == 1
    assert not read_batch([reply], BATCHED, {1}, most=2, lenient=False).requests


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "at least one"),
        ([PING, NOTE, NOTE], "3 messages; at most 2 are allowed"),
        ([NOTE, [PING]], "Message 2 of the batch"),
        ([PING, PING], "the same id"),
        ([PING, {**PING, "id": 2, "method": "initialize"}], "single message"),
        ([NOTE, {**PING, "id": 7}], "id 7 is running"),
    ],
)
def test_batches_that_are_refused(value: list[object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read_batch(value, BATCHED, {7}, most=2, lenient=False)


@pytest.mark.parametrize("message", [PING, NOTE])
def test_a_batch_of_both_eras(message: dict[str, Any]) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    newer = {**message, "params": {"_meta": meta}}
    with pytest.raises(MixedEras):
        read_batch([NOTE, newer], BATCHED, (), most=2, lenient=False)


@pytest.mark.parametrize("version", STATEFUL)
def test_one_revision_has_batches(version: str) -> None:
    if version == "2025-03-26":
        conversation.check_batches(STATEFUL[version])
        return
    for revision in (STATEFUL[version], None):
        with pytest.raises(InvalidRequest, match="single message"):
            read_batch([PING], revision, (), most=2, lenient=False)
