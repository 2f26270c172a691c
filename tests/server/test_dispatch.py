"""From a request to its answer: failures of ours, and the ids of answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import product
from typing import Any, Final

import pytest

from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import (
    InvalidParams,
    MethodNotFound,
    ResourceNotFound,
    Unavailable,
)
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server import dispatch
from mcp_app.server.handlers import HANDLERS
from mcp_app.server.handlers.definitions import LISTINGS
from tests.asgi_client import Client
from tests.marks import NEWEST_FIRST
from tests.published import published
from tests.wire.middleware import WireCheck
from tests.wire.validation import wire_validator

IDS: Final[list[str | int]] = [
    *(0, -1, 2**53 - 1, -(2**53) + 1, "a", 'quote " and \\', "\0\n", "💥")
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_answers_have_the_id_of_their_request(client: Client) -> None:
    for request_id in IDS:
        for tool in ("drill_add", "nothing"):
            params = {"name": tool, "arguments": {"a": 1, "b": 2}}
            found = await client.request("tools/call", params, id=request_id)
            assert found.answer["id"] == request_id


@pytest.fixture
async def same_for_all(served_rows: None) -> AsyncIterator[str]:
    """The path of a server whose lists demand nothing of whoever it lets in."""
    row = Server(
        slug="same", access="header", page_size=2, selection="tags", tags="paged"
    )
    await writer.run(published, row)
    yield "/mcp/same"
    await writer.run(row.delete)


@pytest.mark.parametrize("method", sorted({*LISTINGS} - {"skills/list"}))
async def test_what_is_kept_for_all_is_not_for_a_limited_caller(
    application: WireCheck, same_for_all: str, method: str
) -> None:
    """Whoever asked before: the first page is kept, encoded, and so are selections."""
    member = "resourceTemplates" if "templates" in method else method.partition("/")[0]
    reads = 0 if member == "tools" else 2
    sizes: list[tuple[dict[str, str], int]] = [
        *(({}, 2), ({"x-tags": "other"}, 0), ({"x-tags": "other paged"}, 2)),
        ({"x-may": "read"}, reads),
        ({"x-may": "read", "x-tags": "other"}, 0),
    ]
    for (before, _), (caller, size) in product(sizes, sizes):
        results = [
            (await client.request(method)).result
            for client in (
                Client(application, path=same_for_all, headers={"x-user": "ana", **who})
                for who in (before, caller)
            )
        ]
        assert len(results[1][member]) == size
        assert ("nextCursor" in results[1]) is bool(size)
        cursor = results[0].get("nextCursor")
        if cursor is not None:
            client = Client(
                application, path=same_for_all, headers={"x-user": "ana", **caller}
            )
            found = await client.request(method, {"cursor": cursor})
            assert len(found.result[member]) == size


def broken(*_: object) -> Callable[..., Awaitable[None]]:
    async def handler(exchange: object) -> None:
        raise RuntimeError("the secret of the inside")

    return handler


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_handler_that_fails(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handlers: Mapping[str, Any] = {**HANDLERS, "prompts/list": broken()}
    monkeypatch.setattr(dispatch, "HANDLERS", handlers)
    found = await client.request("prompts/list", id=7)
    assert (found.error["code"], found.answer["id"]) == (-32603, 7)
    assert b"secret" not in found.raw
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_result_that_is_not_json(client: Client) -> None:
    found = await client.request("prompts/get", {"name": "prompt_surrogate"}, id=7)
    assert (found.error["code"], found.answer["id"]) == (-32603, 7)
    batch = client.message("prompts/get", {"name": "prompt_surrogate"}, id=8)
    if client.revision.batches:
        found = await client.sent([batch])
        assert (found.error["code"], found.answer["id"]) == (-32603, 8)


@pytest.mark.parametrize("version", REVISIONS)
def test_refusals(version: str) -> None:
    revision = REVISIONS[version]
    missing = -32602 if revision.stateless else -32002
    unknown = 404 if revision.stateless else 200
    for error, status, code in (
        (InvalidParams("No."), 200, -32602),
        (MethodNotFound("No."), unknown, -32601),
        (ResourceNotFound("a:b"), 200, missing),
        (Unavailable("No."), 503, -32603),
    ):
        found, body = dispatch.encoded_refusal(revision, 7, error)
        message = jsonrpc.read(body)
        assert isinstance(message, dict)
        assert (found, message["error"]["code"], message["id"]) == (status, code, 7)
        assert wire_validator(version).check(message) == []
        _, body = dispatch.encoded_refusal(revision, None, error)
        message = jsonrpc.read(body)
        assert isinstance(message, dict)
        assert ("id" in message) == revision.null_error_id
        assert wire_validator(version).check(message) == []
