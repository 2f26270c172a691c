"""The Context: every member, in both eras, from any thread and any loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from mcp_app import (
    Accepted,
    CallCancelled,
    ClientCannot,
    Context,
    Elicit,
    Roots,
    SyncContext,
    TimedOut,
)
from mcp_app.models import Change
from mcp_app.pools.database import writer
from tests.asgi_client import PREFIX, Client
from tests.drill.models import Ledger
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect

pytestmark = pytest.mark.usefixtures("scripted")

Script: TypeAlias = Callable[[Any], Any]
URI: Final = "test://static-text"
META: Final = {"progressToken": "p", f"{PREFIX}logLevel": "info"}
PATIENCE_S: Final = 5


@dataclass
class Order:
    """What the person is asked for."""

    cake: str


def enter(line: str) -> int:
    """Leave a line, and return how many there are of it."""
    Ledger.objects.create(key=line, worker="a test")
    return Ledger.objects.filter(key=line).count()


def seen(ctx: Context | SyncContext, *found: Any) -> dict[str, Any]:
    """Say in JSON what the members gave."""
    ordered, visited, sampled, roots, both, line, user = found
    assert isinstance(ctx.request_id, int)
    assert ctx.deadline is not None
    assert 0 < ctx.deadline <= 60
    return {
        "ordered": ordered.data.cake,
        "visited": isinstance(visited, Accepted),
        "sampled": [sampled.text, sampled.model],
        "roots": [root.uri for root in roots],
        "both": [both["size"].data.cake, [root.uri for root in both["folders"]]],
        "line": line,
        "user": user.get_username(),
        "plain": [
            ctx.principal.user_name,
            ctx.client.name,
            ctx.client.version,
            "sampling" in ctx.client.capabilities,
            ctx.server,
            ctx.cancelled,
        ],
        "revision": ctx.revision,
    }


def everything(line: str) -> Script:
    """Return a script that uses every member."""

    async def script(ctx: Context) -> dict[str, Any]:
        ctx.log("warning", {"mind": "the gap"}, "shop")
        ctx.progress(1, 3, "one")
        ctx.changed(URI)
        ordered = await ctx.elicit("Which cake?", Order)
        visited = await ctx.elicit_url("Pay.", "https://example.org/pay")
        sampled = await ctx.sample("Praise it.", max_tokens=9)
        roots = await ctx.list_roots()
        both = await ctx.ask(size=Elicit("Which size?", Order), folders=Roots())
        entered = await ctx.once("enter", enter, line)
        user = await ctx.user()
        return seen(ctx, ordered, visited, sampled, roots, both, entered, user)

    return script


def everything_sync(line: str) -> Script:
    """Return a script that uses every member, and blocks."""

    def script(ctx: SyncContext) -> dict[str, Any]:
        ctx.log("warning", {"mind": "the gap"}, "shop")
        ctx.progress(1, 3, "one")
        ctx.changed(URI)
        ordered = ctx.elicit("Which cake?", Order)
        visited = ctx.elicit_url("Pay.", "https://example.org/pay")
        sampled = ctx.sample("Praise it.", max_tokens=9)
        roots = ctx.list_roots()
        both = ctx.ask(size=Elicit("Which size?", Order), folders=Roots())
        entered = ctx.once("enter", enter, line)
        user = ctx.user()
        return seen(ctx, ordered, visited, sampled, roots, both, entered, user)

    return script


def in_another_loop(script: Script) -> Script:
    """Run an async script on a loop of its own, in a thread of user code's own."""

    async def moved(ctx: Context) -> Any:
        return await asyncio.to_thread(asyncio.run, script(ctx))

    return moved


def in_another_thread(script: Script) -> Script:
    """Run a blocking script in a thread that user code starts."""

    def moved(ctx: SyncContext) -> Any:
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(script, ctx).result()

    return moved


PLACES: Final[dict[str, tuple[str, Callable[[str], Script]]]] = {
    "on the loop": ("async", everything),
    "on a loop in a thread": ("database", everything),
    "on a loop of its own": ("async", lambda line: in_another_loop(everything(line))),
    "in a thread": ("sync", everything_sync),
    "in a thread of its own": (
        "sync",
        lambda line: in_another_thread(everything_sync(line)),
    ),
}


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer every question."""
    if method == "sampling/createMessage":
        praise = {"type": "text", "text": "Good."}
        return {"role": "assistant", "content": praise, "model": "poet"}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///cakes"}]}
    content = {} if params.get("mode") == "url" else {"content": {"cake": "plum"}}
    return {"action": "accept", **content}


@pytest.fixture
async def user(served_rows: None) -> AsyncIterator[AbstractBaseUser]:
    """A user who is there for all threads."""
    name = f"user-{uuid4().hex[:8]}"
    made: Any = await writer.run(get_user_model().objects.create, username=name)
    yield made
    await writer.run(made.delete)


Join: TypeAlias = Callable[[str], Awaitable[Client]]


@pytest.fixture
def join(connect: Connect, user: AbstractBaseUser) -> Join:
    """Connect as the user."""

    async def joined(version: str) -> Client:
        headers = {"x-user": str(user.pk)}
        return await connect(version, path="/mcp/private", headers=headers)

    return joined


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("place", PLACES)
async def test_every_member(
    play: Play, join: Join, user: AbstractBaseUser, version: str, place: str
) -> None:
    tool, script = PLACES[place]
    client = await join(version)
    before = await writer.run(Change.objects.count)
    line = uuid4().hex
    outcome = await play(
        tool, script(line), client=client, answer=answered, meta=META
    )
    assert outcome.result["structuredContent"]["result"] == {
        "ordered": "plum",
        "visited": True,
        "sampled": ["Good.", "poet"],
        "roots": ["file:///cakes"],
        "both": ["plum", ["file:///cakes"]],
        "line": 1,
        "user": user.get_username(),
        "plain": [str(user.pk), "drill-client", "1.0", True, "private", False],
        "revision": version,
    }
    assert len(outcome.questions) == 6
    assert outcome.notifications("notifications/message") == [
        {"level": "warning", "logger": "shop", "data": {"mind": "the gap"}}
    ]
    assert outcome.notifications("notifications/progress") == [
        {"progressToken": "p", "progress": 1, "total": 3, "message": "one"}
    ]
    # In the stateless era each retry runs the code before the questions again.
    runs = 1 if version == STATEFUL else 6
    async with asyncio.timeout(PATIENCE_S):
        while await writer.run(Change.objects.count) < before + runs:
            await asyncio.sleep(0.01)
