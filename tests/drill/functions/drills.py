"""Drill tools: faults, load and clients are tested from outside with them."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import Any, Final, Literal, TypedDict

from mcp_app import Context, SyncContext, ToolError, mcp
from mcp_app.interface.context import Level
from mcp_app.interface.questions import ElicitAnswer
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.server.context import current_call
from tests.drill.functions.answers import Reply, accepted
from tests.drill.models import Ledger

SIGN_IN: Final = ("Please sign in.", "https://example.com/sign-in")
EXIT_STATUS: Final = 9


class Caller(TypedDict):
    """Who calls, in which revision, and whether in a session."""

    user: str
    client: str
    revision: str
    session: bool


@mcp.function("drill.add")
async def add(a: int, b: int) -> int:
    return a + b


@mcp.function("drill.add_sync")
def add_sync(a: int, b: int) -> int:
    return a + b


@mcp.function("drill.echo")
async def echo(value: Any) -> Any:
    return value


@mcp.function("drill.count")
async def count(ctx: Context, n: int, delay_ms: int, payload_bytes: int = 0) -> str:
    pad = "x" * payload_bytes
    follows = _client_follows()
    for i in range(1, n + 1):
        await asyncio.sleep(delay_ms / 1000)
        if follows:
            ctx.progress(i, n, pad or None)
        else:
            ctx.log("info", {"i": i, "pad": pad})
    return f"done {n}"


def _client_follows() -> bool:
    """Whether a progress token came, which user code need not know elsewhere."""
    call = current_call.get()
    return call is not None and "progressToken" in call.request.meta


@mcp.function("drill.sleep")
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept {seconds:g} s"


@mcp.function("drill.sleep_sync")
def sleep_sync(ctx: SyncContext, seconds: float) -> str:
    end = time.monotonic() + seconds
    while not ctx.cancelled and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
    return f"slept {seconds:g} s"


def _enter(key: str) -> None:
    worker = f"{socket.gethostname()}:{os.getpid()}"
    Ledger.objects.create(key=key, worker=worker)


@mcp.function("drill.ledger", atomic=False)
def ledger(key: str, seconds: float) -> int:
    """Return the number of lines with that key; the first is committed at once."""
    _enter(key)
    time.sleep(seconds)
    return Ledger.objects.filter(key=key).count()


@mcp.function("drill.ask")
async def ask(ctx: Context, question: str) -> str:
    return accepted(await ctx.elicit(question, Reply)).answer


@mcp.function("drill.ask_sync", atomic=False)
def ask_sync(ctx: SyncContext, question: str) -> str:
    return accepted(ctx.elicit(question, Reply)).answer


@mcp.function("drill.ask_database", database=True)
async def ask_database(ctx: Context, question: str) -> str:
    return accepted(await ctx.elicit(question, Reply)).answer


@mcp.function("drill.ask_atomic", atomic=True)
def ask_atomic(ctx: SyncContext, question: str) -> str:
    return accepted(ctx.elicit(question, Reply)).answer


@mcp.function("drill.ask_twice", atomic=False)
def ask_twice(ctx: SyncContext, question: str) -> str:
    """Ask, enter one ledger line under the question, ask again."""
    first = accepted(ctx.elicit(question, Reply, key="first")).answer
    ctx.once("line", _enter, question)
    second = accepted(ctx.elicit(f"{question} (again)", Reply, key="second")).answer
    return f"{first} {second}"


@mcp.function("drill.ask_url")
async def ask_url(ctx: Context) -> str:
    answer = await ctx.elicit_url(*SIGN_IN, key="sign_in")
    ctx.visited("sign_in")
    return _action(answer)


@mcp.function("drill.ask_url_sync", atomic=False)
def ask_url_sync(ctx: SyncContext) -> str:
    answer = ctx.elicit_url(*SIGN_IN, key="sign_in")
    ctx.visited("sign_in")
    return _action(answer)


def _action(answer: ElicitAnswer[None]) -> str:
    return type(answer).__name__.lower()


@mcp.function("drill.touch")
async def touch(ctx: Context, uri: str) -> str:
    ctx.changed(uri)
    return f"touched {uri}"


@mcp.function("drill.log")
async def log(ctx: Context, level: Level, text: str) -> str:
    ctx.log(level, text)
    return f"logged at {level}"


@mcp.function("drill.fail")
async def fail(kind: Literal["tool_error", "exception", "exit"]) -> str:
    if kind == "exit":
        os._exit(EXIT_STATUS)
    if kind == "exception":
        raise ValueError("This exception was ordered by the caller.")
    raise ToolError("This error was ordered by the caller.")


@mcp.function("drill.whoami")
async def whoami(ctx: Context) -> Caller:
    return Caller(
        user=ctx.principal.user_name,
        client=ctx.client.name,
        revision=ctx.revision,
        session=ctx.revision in STATEFUL,
    )


@mcp.function("drill.plain")
async def plain(text: str = "") -> str:
    return text
