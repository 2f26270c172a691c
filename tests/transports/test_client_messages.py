"""What a cancellation names: an id, and nothing that is merely equal to one."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcp_app.interface.principal import Principal, Rights
from mcp_app.protocol.envelope import Notification
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.outcome import Response
from mcp_app.server.request import Request
from mcp_app.server.run import Run
from mcp_app.transports.client_messages import CANCELLED, Together


def cancellation(**params: Any) -> Notification:
    return Notification(CANCELLED, params)


MOST = 100
"""Bytes that all answers together may have."""


class Reply:
    """Who sends the answers."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.silent = 0
        self.told: list[str] = []

    def send_answer(self, status: int, body: bytes) -> None:
        self.sent.append((status, json.loads(body)))

    def lasting(self) -> None:
        self.told.append("lasting")

    def beat(self) -> None:
        self.told.append("beat")

    def finished(self, task: asyncio.Task[Response]) -> None:
        self.silent += 1


class Sized(Together):
    """A batch whose requests are answered by a text of so many bytes."""

    async def _answer_member(self, run: Run) -> Response:
        size = cast("int", run.request.params["size"])
        return Response(200, b'"' + b"x" * (size - 2) + b'"')


def run_of(size: int = 10, request_id: int = 1) -> Run:
    adapters: Any = SimpleNamespace(limits=SimpleNamespace(body=MOST))
    catalog: Any = None
    request = Request(
        adapters,
        catalog,
        Principal.ANONYMOUS,
        Rights(),
        REVISIONS["2025-03-26"],
        request_id,
        "tools/call",
        {"size": size},
        {},
    )
    return Run(request)


async def done(work: Any) -> asyncio.Task[Response]:
    task: asyncio.Task[Response] = asyncio.ensure_future(work)
    await asyncio.wait([task])
    return task


async def cancelled() -> asyncio.Task[Response]:
    task: asyncio.Task[Response] = asyncio.create_task(
        asyncio.sleep(60, Response(200, b"1"))
    )
    task.cancel()
    return await done(task)


async def broken() -> Response:
    raise ZeroDivisionError


async def answers(*sizes: int) -> list[Any]:
    """Return what each request of a batch is answered by."""
    batch = Sized(Reply(), len(sizes), [])
    return [
        json.loads((await batch.answer_request(run_of(size, number)))[1])
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [
        ((MOST,), []),
        ((MOST + 1,), [0]),
        ((60, 40), []),
        ((60, 41), [1]),
        # What was refused takes no room from those that follow.
        ((60, 41, 40), [1]),
        ((60, 41, 41, 40, 2), [1, 2, 4]),
    ],
)
async def test_all_together_have_a_size(
    sizes: tuple[int, ...], refused: list[int]
) -> None:
    found = await answers(*sizes)
    assert [place for place, each in enumerate(found) if type(each) is dict] == refused
    for place in refused:
        assert found[place]["id"] == place
        assert found[place]["error"]["code"] == -32603
        assert f"more than {MOST} bytes" in found[place]["error"]["message"]


async def test_the_last_answer_sends_them_all_in_their_order() -> None:
    reply = Reply()
    batch = Sized(reply, 2, [b'"refused"'])
    for _ in range(2):
        assert reply.sent == []
        batch.finished(await done(batch.answer_request(run_of(3))))
    assert reply.sent == [(200, ["refused", "x", "x"])]
    assert reply.silent == 0


async def test_what_was_cancelled_or_broke_has_no_answer() -> None:
    reply = Reply()
    batch = Sized(reply, 3, [])
    batch.finished(await cancelled())
    batch.finished(await done(batch.answer_request(run_of(3))))
    batch.finished(await done(broken()))
    assert reply.sent == [(200, ["x"])]


async def test_what_was_refused_is_answered_although_all_else_was_cancelled() -> None:
    reply = Reply()
    batch = Sized(reply, 1, [b"7"])
    batch.finished(await cancelled())
    assert reply.sent == [(200, [7])]
