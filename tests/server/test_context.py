"""The Context: every member, in both eras, from any thread and any loop."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
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
from mcp_app.interface.context import MAX_RECONNECT_DELAY_S
from mcp_app.models import Change, Topic
from mcp_app.models.fields import digest
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.streams.retention import STREAMS_KEPT_MS
from tests.asgi_client import PREFIX, Client, Visit
from tests.drill.models import Ledger
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect

pytestmark = pytest.mark.usefixtures("scripted")

Script: TypeAlias = Callable[[Any], Any]
URI: Final = "test://static-text"
META: Final = {"progressToken": "p", f"{PREFIX}logLevel": "info"}
PATIENCE_S: Final = 60


@dataclass
class Order:
    cake: str


def enter(line: str) -> int:
    Ledger.objects.create(key=line, worker="a test")
    return Ledger.objects.filter(key=line).count()


def seen(ctx: Context | SyncContext, *found: Any) -> dict[str, Any]:
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
    async def script(ctx: Context) -> dict[str, Any]:
        # Whoever knows other servers' contexts awaits these.
        await ctx.log("warning", {"mind": "the gap"}, "shop")
        await ctx.progress(1, 3, "one")
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
    async def moved(ctx: Context) -> Any:
        return await asyncio.to_thread(asyncio.run, script(ctx))

    return moved


def in_another_thread(script: Script) -> Script:
    def moved(ctx: SyncContext) -> Any:
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(script, ctx).result()

    return moved


MOVED: Final[dict[str, Callable[[Script], Script]]] = {
    "on a loop of its own": in_another_loop,
    "in a thread of its own": in_another_thread,
}

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
    if method == "sampling/createMessage":
        praise = {"type": "text", "text": "Good."}
        return {"role": "assistant", "content": praise, "model": "poet"}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///cakes"}]}
    content = {} if params.get("mode") == "url" else {"content": {"cake": "plum"}}
    return {"action": "accept", **content}


@pytest.fixture
async def user(served_rows: None) -> AsyncIterator[AbstractBaseUser]:
    name = f"user-{uuid4().hex[:8]}"
    made: Any = await writer.run(get_user_model().objects.create, username=name)
    yield made
    await writer.run(made.delete)


Join: TypeAlias = Callable[[str], Awaitable[Client]]


@pytest.fixture
def join(connect: Connect, user: AbstractBaseUser) -> Join:
    async def joined(version: str) -> Client:
        headers = {"x-user": str(user.pk)}
        return await connect(version, path="/mcp/private", headers=headers)

    return joined


def told(uri: str) -> bool:
    name = {"kind": "uri", "ref": digest(uri)}
    return any(model.objects.filter(**name).exists() for model in (Change, Topic))


@pytest.mark.databases
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("place", PLACES)
async def test_every_member(
    play: Play,
    join: Join,
    user: AbstractBaseUser,
    process: Process,
    version: str,
    place: str,
) -> None:
    tool, script = PLACES[place]
    client = await join(version)
    await writer.run(process._row.watch, [URI])
    line = uuid4().hex
    outcome = await play(tool, script(line), client=client, answer=answered, meta=META)
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
    async with asyncio.timeout(PATIENCE_S):
        while not await writer.run(told, URI):
            await asyncio.sleep(0.01)


# -- the ends of a call ----------------------------------------------------------


@dataclass
class Meeting:
    loop: asyncio.AbstractEventLoop
    entered: asyncio.Event
    told: list[str]
    over: asyncio.Event

    def enter(self) -> None:
        self.loop.call_soon_threadsafe(self.entered.set)

    def tell(self, *sentences: str) -> None:
        self.told.extend(sentences)
        self.loop.call_soon_threadsafe(self.over.set)

    async def outcome(self) -> list[str]:
        async with asyncio.timeout(PATIENCE_S):
            await self.over.wait()
        return self.told


@pytest.fixture
async def meeting() -> Meeting:
    return Meeting(asyncio.get_running_loop(), asyncio.Event(), [], asyncio.Event())


async def cancel(client: Client, visit: Visit, request_id: object) -> None:
    if client.revision.stateless:
        await visit.leave()
        return
    params = {"requestId": request_id}
    await client.notify("notifications/cancelled", params)
    assert all("method" in each for each in await visit.messages())


async def begun_and_cancelled(
    play: Play, client: Client, tool: str, script: Script, meeting: Meeting
) -> None:
    message = client.message("tools/call", play.params(tool, script))
    visit = client.post(message)
    async with asyncio.timeout(PATIENCE_S):
        await meeting.entered.wait()
    await cancel(client, visit, message["id"])


async def asked_and_cancelled(
    play: Play, client: Client, tool: str, script: Script
) -> None:
    message = client.message("tools/call", play.params(tool, script))
    visit = client.post(message)
    await visit.begun()
    question = await visit.message()
    assert question is not None
    assert question["method"] == "elicitation/create"
    await cancel(client, visit, message["id"])


def until_cancelled(ctx: SyncContext) -> None:
    end = time.monotonic() + PATIENCE_S
    while not ctx.cancelled and time.monotonic() < end:
        time.sleep(0.002)


MEMBERS: Final[dict[str, Callable[[SyncContext], object]]] = {
    "log": lambda ctx: ctx.log("info", "late"),
    "progress": lambda ctx: ctx.progress(1),
    "visited": lambda ctx: ctx.visited(),
    "changed": lambda ctx: ctx.changed("tools"),
    "reconnect": lambda ctx: ctx.reconnect(1),
    "elicit": lambda ctx: ctx.elicit("Which?", Order),
    "elicit_url": lambda ctx: ctx.elicit_url("Pay.", "https://example.org/"),
    "sample": lambda ctx: ctx.sample("Praise it.", max_tokens=9),
    "list_roots": lambda ctx: ctx.list_roots(),
    "ask": lambda ctx: ctx.ask(roots=Roots()),
    "once": lambda ctx: ctx.once("enter", enter, "a line of a cancelled call"),
    "user": lambda ctx: ctx.user(),
}


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_cancelled_call_in_a_thread_ends_at_its_next_member(
    play: Play, connect: Connect, meeting: Meeting, version: str
) -> None:
    def script(ctx: SyncContext) -> None:
        meeting.enter()
        until_cancelled(ctx)
        ended = []
        for name, member in MEMBERS.items():
            try:
                member(ctx)
            except CallCancelled:
                ended.append(name)
        meeting.tell(*ended)

    client = await connect(version)
    await begun_and_cancelled(play, client, "sync", script, meeting)
    assert await meeting.outcome() == list(MEMBERS)


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("tool", ["async", "database"])
async def test_a_cancelled_call_on_a_loop_is_cancelled_where_it_waits(
    play: Play, connect: Connect, meeting: Meeting, version: str, tool: str
) -> None:
    async def script(ctx: Context) -> None:
        meeting.enter()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            meeting.tell(f"cancelled {ctx.cancelled}")
            raise

    client = await connect(version)
    await begun_and_cancelled(play, client, tool, script, meeting)
    assert await meeting.outcome() == ["cancelled True"]


async def waiting(ctx: Context, meeting: Meeting) -> None:
    try:
        await ctx.elicit("Which cake?", Order)
    except (asyncio.CancelledError, CallCancelled) as error:
        meeting.tell(type(error).__name__)
        raise


def waiting_sync(ctx: SyncContext, meeting: Meeting) -> None:
    try:
        ctx.elicit("Which cake?", Order)
    except (asyncio.CancelledError, CallCancelled) as error:
        meeting.tell(type(error).__name__)
        raise


@pytest.mark.parametrize("place", PLACES)
async def test_a_question_ends_with_its_call(
    play: Play, connect: Connect, meeting: Meeting, place: str
) -> None:
    tool, _ = PLACES[place]
    ask = partial(waiting_sync if tool == "sync" else waiting, meeting=meeting)
    script = MOVED[place](ask) if place in MOVED else ask
    client = await connect(STATEFUL)
    await asked_and_cancelled(play, client, tool, script)
    ends = "CallCancelled" if tool == "sync" else "CancelledError"
    assert await meeting.outcome() == [ends]


@pytest.mark.parametrize("tool", ["short", "short_database"])
async def test_the_time_of_an_async_call_is_used_up(
    play: Play, meeting: Meeting, tool: str
) -> None:
    async def script(ctx: Context) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            meeting.tell(f"left {ctx.deadline:.1f}")
            raise

    outcome = await play(tool, script)
    assert outcome.text == f"{tool} did not finish within 0.3 seconds."
    assert await meeting.outcome() == ["left 0.0"]


async def test_progress_buys_no_time(play: Play) -> None:
    async def script(ctx: Context) -> None:
        for step in count():
            ctx.progress(step)
            await asyncio.sleep(0.01)

    outcome = await play("short", script, meta=META)
    assert outcome.text == "short did not finish within 0.3 seconds."
    assert outcome.notifications("notifications/progress")


async def test_the_time_of_a_call_in_a_thread_is_used_up(
    play: Play, meeting: Meeting
) -> None:
    def script(ctx: SyncContext) -> None:
        until_cancelled(ctx)
        meeting.tell(f"cancelled {ctx.cancelled}")

    outcome = await play("short_sync", script)
    assert outcome.text == "short_sync did not finish within 0.3 seconds."
    assert await meeting.outcome() == ["cancelled True"]


@pytest.mark.parametrize("tool", ["second", "second_sync"])
async def test_the_time_stands_while_a_question_is_open(
    play: Play, connect: Connect, tool: str
) -> None:
    async def script(ctx: Context) -> list[float | None]:
        before = ctx.deadline
        await ctx.elicit("Which cake?", Order)
        return [before, ctx.deadline]

    def script_sync(ctx: SyncContext) -> list[float | None]:
        before = ctx.deadline
        ctx.elicit("Which cake?", Order)
        return [before, ctx.deadline]

    def slowly(method: str, params: dict[str, Any]) -> dict[str, Any]:
        # The loop stands still: more than the time of the call goes by.
        time.sleep(1.1)
        return answered(method, params)

    chosen = script if tool == "second" else script_sync
    client = await connect(STATEFUL)
    outcome = await play(tool, chosen, client=client, answer=slowly)
    before, after = outcome.result["structuredContent"]["result"]
    assert 0 < after <= before <= 1.0


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_thread_of_a_call_that_is_over_is_not_heard(
    play: Play, connect: Connect, meeting: Meeting, version: str
) -> None:
    go = threading.Event()

    def late(ctx: SyncContext) -> None:
        assert go.wait(PATIENCE_S)
        ctx.log("error", "late")
        ctx.progress(2)
        meeting.tell(f"cancelled {ctx.cancelled}")

    def script(ctx: SyncContext) -> str:
        threading.Thread(target=late, args=(ctx,), daemon=True).start()
        return "over"

    client = await connect(version)
    outcome = await play("sync", script, client=client, meta=META)
    go.set()
    assert await meeting.outcome() == ["cancelled False"]
    assert outcome.text == "over"
    assert len(outcome.messages) == 1


# -- telling -------------------------------------------------------------------


def of_tool(tool: str, script: Script) -> Script:
    """Return a script that never waits as a function of the kind of this tool."""

    async def awaited(ctx: Context) -> Any:
        return script(ctx)

    return script if tool == "sync" else awaited


@pytest.mark.parametrize("tool", ["async", "sync"])
async def test_a_level_that_does_not_exist(play: Play, tool: str) -> None:
    def wrong(ctx: Context | SyncContext) -> str:
        with pytest.raises(ValueError, match=r"'loud' is not a level\. Use .* debug"):
            ctx.log("loud", "Hear!")  # type: ignore[arg-type]
        return "refused"

    assert (await play(tool, of_tool(tool, wrong))).text == "refused"


async def test_data_that_json_cannot_say(play: Play) -> None:
    async def script(ctx: Context) -> str:
        for data in (object(), {"a": [float("nan")]}, "\ud800"):
            with pytest.raises(ValueError, match=r"\$"):
                ctx.log("error", data)
        return "refused"

    outcome = await play("async", script, meta=META)
    assert (outcome.text, len(outcome.messages)) == ("refused", 1)


NO_TIMES: Final = (0, -1, 600.1, float("inf"), float("nan"))


@pytest.mark.parametrize("after", NO_TIMES)
@pytest.mark.parametrize("tool", ["async", "sync"])
async def test_a_time_after_which_nobody_can_come_back(
    play: Play, tool: str, after: float
) -> None:
    rule = f"cannot come back after {after!r} seconds. Give more than 0 and at most 600"

    def wrong(ctx: Context | SyncContext) -> str:
        with pytest.raises(ValueError, match=re.escape(rule)):
            ctx.reconnect(after)
        return "refused"

    assert (await play(tool, of_tool(tool, wrong))).text == "refused"


def test_the_rest_of_a_call_is_kept_for_longer_than_anybody_may_be_away() -> None:
    assert STREAMS_KEPT_MS > 2 * MAX_RECONNECT_DELAY_S * 1000


@pytest.mark.parametrize("place", PLACES)
async def test_a_client_is_sent_away_from_wherever_code_runs(
    play: Play, connect: Connect, place: str
) -> None:
    go = threading.Event()

    async def script(ctx: Context) -> str:
        ctx.reconnect(MAX_RECONNECT_DELAY_S)
        while not go.is_set():
            await asyncio.sleep(0.01)
        return "over"

    def script_sync(ctx: SyncContext) -> str:
        ctx.reconnect(0.0001)
        assert go.wait(PATIENCE_S)
        return "over"

    tool, _ = PLACES[place]
    chosen: Script = script_sync if tool == "sync" else script
    retry_ms = 1 if tool == "sync" else 600_000
    if place in MOVED:
        chosen = MOVED[place](chosen)
    client = await connect(STATEFUL)
    visit = play.begin(tool, chosen, client)
    assert await visit.messages() == []
    assert visit.raw.endswith(f"retry: {retry_ms}\n\n".encode())
    again = client.visit("GET", headers={"last-event-id": visit.ids[-1]})
    await again.opened()
    go.set()
    (answer,) = await again.messages()
    assert answer["result"]["content"][0]["text"] == "over"


async def test_a_question_waits_for_a_client_that_is_away(
    play: Play, connect: Connect
) -> None:
    async def script(ctx: Context) -> str:
        ctx.reconnect(1)
        answer = await ctx.elicit("Which cake?", Order)
        return answer.data.cake if isinstance(answer, Accepted) else "none"

    client = await connect(STATEFUL)
    visit = play.begin("async", script, client)
    # The question was said in time, or it waits.
    messages = await visit.messages()
    again = client.visit("GET", headers={"last-event-id": visit.ids[-1]})
    question = messages[0] if messages else await again.message()
    assert question is not None
    reply = answered(question["method"], question["params"])
    assert (await client.reply(question["id"], reply)).status == 202
    *_, answer = await again.messages()
    assert answer["result"]["content"][0]["text"] == "plum"


async def test_the_level_of_a_session_counts_from_the_moment_it_is_set(
    play: Play, stateful: Client, meeting: Meeting
) -> None:
    go = asyncio.Event()

    async def script(ctx: Context) -> None:
        ctx.log("info", "unasked, from info on")
        ctx.log("debug", "unheard")
        meeting.enter()
        await go.wait()
        ctx.log("info", "unheard")
        ctx.log("error", "heard")

    visit = play.begin("async", script, stateful)
    await meeting.entered.wait()
    await stateful.request("logging/setLevel", {"level": "error"})
    go.set()
    data = [each["params"]["data"] for each in (await visit.messages())[:-1]]
    assert data == ["unasked, from info on", "heard"]


@pytest.mark.parametrize("mcp", [{"LIMITS": {"progress_burst": 1, "progress_rate": 2}}])
async def test_a_log_message_that_was_too_many_is_not_told_later(play: Play) -> None:
    async def script(ctx: Context) -> None:
        ctx.log("info", "told")
        ctx.log("info", "too many")
        # Progress that was held back would be told in half a second.
        await asyncio.sleep(0.6)

    outcome = await play("async", script, meta=META)
    logged = outcome.notifications("notifications/message")
    assert [each["data"] for each in logged] == ["told"]


# -- asking ---------------------------------------------------------------------


async def test_a_question_that_is_not_answered_in_time(
    play: Play, connect: Connect
) -> None:
    async def script(ctx: Context) -> str:
        with pytest.raises(TimedOut, match="did not answer cake in time"):
            await ctx.elicit("Which cake?", Order, key="cake", timeout=0.05)
        return "no cake"

    client = await connect(STATEFUL)
    visit = play.begin("async", script, client)
    asked, taken_back, last = await visit.messages()
    assert asked["method"] == "elicitation/create"
    assert taken_back["params"]["requestId"] == asked["id"]
    assert last["result"]["content"][0]["text"] == "no cake"
    # Who answers late is told nothing else: the question was asked.
    late = {"action": "accept", "content": {"cake": "plum"}}
    assert (await client.reply(asked["id"], late)).status == 202


@pytest.mark.parametrize("tool", ["async", "database", "sync"])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_client_that_cannot_is_not_asked(
    play: Play, connect: Connect, tool: str, version: str
) -> None:
    async def script(ctx: Context) -> list[Any]:
        with pytest.raises(ClientCannot) as raised:
            await ctx.sample("Praise it.", max_tokens=9)
        return [raised.value.message, raised.value.required]

    def script_sync(ctx: SyncContext) -> list[Any]:
        with pytest.raises(ClientCannot) as raised:
            ctx.sample("Praise it.", max_tokens=9)
        return [raised.value.message, raised.value.required]

    client = await connect(version, capabilities={})
    chosen = script_sync if tool == "sync" else script
    outcome = await play(tool, chosen, client=client)
    assert outcome.result["structuredContent"]["result"] == [
        "The client did not declare the capability 'sampling'.",
        {"sampling": {}},
    ]


# -- the step and the user --------------------------------------------------------


@pytest.mark.databases
@pytest.mark.parametrize("tool", ["async", "database", "atomic", "sync"])
async def test_a_step_runs_once_in_a_call(play: Play, tool: str) -> None:
    line = uuid4().hex

    async def script(ctx: Context) -> list[int]:
        return [await ctx.once("enter", enter, line) for _ in range(2)]

    def script_sync(ctx: SyncContext) -> list[int]:
        return [ctx.once("enter", enter, line) for _ in range(2)]

    outcome = await play(tool, script_sync if tool == "sync" else script)
    assert outcome.result["structuredContent"]["result"] == [1, 1]


@pytest.mark.parametrize("tool", ["async", "sync"])
async def test_a_step_is_a_sync_function(play: Play, tool: str) -> None:
    async def step() -> None:
        raise AssertionError("It must not run.")

    async def script(ctx: Context) -> str:
        with pytest.raises(TypeError, match=r"'pay'. needs a sync function"):
            await ctx.once("pay", step)  # type: ignore[unused-coroutine]
        return "refused"

    def script_sync(ctx: SyncContext) -> str:
        with pytest.raises(TypeError, match=r"'pay'. needs a sync function"):
            ctx.once("pay", step)  # type: ignore[unused-coroutine]
        return "refused"

    outcome = await play(tool, script_sync if tool == "sync" else script)
    assert outcome.text == "refused"


@pytest.mark.databases
async def test_all_places_for_threads_are_taken_by_calls_that_need_one_more(
    play: Play, connect: Connect
) -> None:
    """A call with a thread of its own does not wait for another."""
    barrier = threading.Barrier(8)

    async def script(ctx: Context) -> int:
        await asyncio.to_thread(barrier.wait, PATIENCE_S)
        await ctx.user()
        return await ctx.once("enter", enter, uuid4().hex)

    client = await connect(STATELESS, path="/mcp/private", headers={"x-user": "7"})
    visits = [play.begin("database", script, client) for _ in range(8)]
    for visit in visits:
        (message,) = await visit.messages()
        assert message["result"]["structuredContent"] == {"result": 1}


async def user_name(ctx: Context) -> str | None:
    first, second = await ctx.user(), await ctx.user()
    assert first is second
    return first.get_username() if first is not None else None


@pytest.mark.databases
async def test_the_user_is_read_afresh_by_each_call(
    play: Play, join: Join, user: AbstractBaseUser
) -> None:
    client = await join(STATELESS)
    names = []
    for change in ({}, {"username": f"{user.get_username()}-new"}):
        rows = get_user_model().objects.filter(pk=user.pk)
        if change:
            await writer.run(rows.update, **change)
        outcome = await play("async", user_name, client=client)
        names.append(outcome.result["structuredContent"]["result"])
    assert names == [user.get_username(), f"{user.get_username()}-new"]


@pytest.mark.databases
async def test_an_inactive_user_is_nobody(
    play: Play, join: Join, user: AbstractBaseUser
) -> None:
    client = await join(STATELESS)
    rows = get_user_model().objects.filter(pk=user.pk)
    await writer.run(rows.update, is_active=False)
    outcome = await play("async", user_name, client=client)
    assert outcome.result["structuredContent"]["result"] is None


async def test_an_anonymous_caller_has_no_user(play: Play) -> None:
    outcome = await play("async", user_name)
    assert outcome.result["structuredContent"]["result"] is None
