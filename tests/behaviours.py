"""Definitions that behave in every way that a test of the endpoint needs.

They are declared in code, beside the rows of the fixture set.  The servers of
`tests/serving.py` offer them by their tags.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Final, Literal

from django.db import connection
from django.db.models import Value
from django.utils.translation import activate, get_language
from pydantic import BaseModel

from mcp_app import (
    Accepted,
    AccessRequest,
    ClientCannot,
    Context,
    Elicit,
    ElicitUrl,
    Header,
    Roots,
    Sample,
    SyncContext,
    ToolError,
    mcp,
)
from mcp_app.catalog.registry import Registry
from mcp_app.interface.context import LEVELS
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.questions import (
    Completion,
    ElicitAnswer,
    ModelPreferences,
    PromptMessage,
    PromptOutput,
    SamplingMessage,
    ToolOutput,
)
from mcp_app.protocol.content import (
    Annotations,
    Audio,
    Block,
    EmbeddedResource,
    Icon,
    Image,
    ResourceContents,
    ResourceLink,
    Text,
    ToolResult,
    ToolUse,
)
from tests.drill.models import Ledger

registry: Final = Registry()
registry.functions.update(mcp.functions)
registry.completers.update(mcp.completers)

SECRET: Final = "shop.view_secret"
ICON: Final = Icon(
    src="https://example.org/icon.png",
    mime_type="image/png",
    sizes=["48x48"],
    theme="dark",
)
NOTED: Final = Annotations(
    audience=["user"], priority=0.5, last_modified="2026-01-02T03:04:05Z"
)
BYTES: Final = b"\x00\x01bytes"


@dataclass
class Stage:
    """Where a test and a running tool meet; `stage` is new for each test."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    entered_thread: threading.Event = field(default_factory=threading.Event)
    released_thread: threading.Event = field(default_factory=threading.Event)
    told: list[str] = field(default_factory=list)

    async def begun(self) -> None:
        async with asyncio.timeout(60):
            await self.entered.wait()


_stages: list[Stage] = []


def new_stage() -> Stage:
    _stages[:] = [Stage()]
    return _stages[0]


def stage() -> Stage:
    return _stages[0]


# -- arguments ------------------------------------------------------------------


@registry.tool(read_only=True)
async def typed(
    count: int,
    ratio: float = 0.5,
    on: bool = False,
    names: Sequence[str] = (),
    options: dict[str, int] | None = None,
    kind: Literal["a", "b"] = "a",
    text: str = "",
) -> dict[str, Any]:
    """Returns its arguments."""
    given = {"count": count, "ratio": ratio, "on": on, "names": list(names)}
    return {**given, "options": options, "kind": kind, "text": text}


class Line(BaseModel):
    sku: str
    count: int


class Purchase(BaseModel):
    lines: list[Line]


@registry.tool(read_only=True)
async def ordered(order: Purchase) -> dict[str, Any]:
    """Returns what was ordered."""
    lines = order.lines
    return {"skus": [each.sku for each in lines], "count": sum(e.count for e in lines)}


@registry.tool(
    input_schema={
        "type": "object",
        "properties": {
            "anything": True,
            "nothing": False,
            "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
            "bare": {},
            "many": {"type": ["integer", "string"]},
        },
    }
)
async def loose(
    anything: Any = None,
    nothing: Any = None,
    either: Any = None,
    bare: Any = None,
    many: Any = None,
) -> dict[str, Any]:
    """Has subschemas of every kind."""
    return {"anything": anything, "either": either, "bare": bare, "many": many}


DRAFT_07: Final[dict[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "definitions": {
        "pair": {
            "type": "array",
            "items": [{"type": "integer"}, {"type": "string"}],
            "additionalItems": False,
        }
    },
    "properties": {"pair": {"$ref": "#/definitions/pair"}},
    "required": ["pair"],
}


@registry.tool(input_schema=DRAFT_07, read_only=True)
async def pairs(pair: list[Any]) -> str:
    """Has a schema of an older dialect."""
    return f"{pair}"


@registry.tool
async def dated(day: date) -> str:
    return day.isoformat()


@registry.tool
async def mirrors(
    region: Annotated[str, Header("Region")] = "",
    count: Annotated[int, Header("Count")] = 0,
    on: Annotated[bool, Header("On")] = False,
) -> str:
    stage().told.append("mirrors ran")
    return f"{region} {count} {on}"


# -- results ----------------------------------------------------------------------

BLOCKS: Final[tuple[Block, ...]] = (
    Text("plain"),
    Text("noted", annotations=NOTED, meta={"example.org/a": 1}),
    Image(BYTES, "image/png"),
    Audio(BYTES, "audio/wav", annotations=NOTED),
    ResourceLink(
        "memo://fixed",
        "fixed",
        title="A memo",
        description="It is fixed.",
        mime_type="text/plain",
        size=4,
        icons=[ICON],
    ),
    ResourceLink("memo://bare", "bare"),
    EmbeddedResource(ResourceContents(uri="memo://text", text="said")),
    EmbeddedResource(
        ResourceContents(
            uri="memo://blob",
            blob=BYTES,
            mime_type="image/png",
            meta={"example.org/b": 2},
        )
    ),
)


@registry.tool
async def blocks() -> list[Block]:
    return list(BLOCKS)


@dataclass
class Weather:
    degrees: float
    words: str


@registry.tool(
    title="The weather",
    description="Tells the weather.",
    icons=[ICON],
    meta={"example.org/c": 3},
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
    position=-1,
    tags=["shown"],
)
async def weather(place: str = "here") -> Weather:
    return Weather(7.5, f"mild {place}")


@registry.tool(output_schema={"type": "object", "required": ["degrees"]})
async def broken_promise(kind: Literal["other", "none", "error"]) -> ToolOutput:
    if kind == "error":
        return ToolOutput([Text("It failed.")], is_error=True)
    structured = {"words": "mild"} if kind == "other" else None
    return ToolOutput([Text("mild")], structured=structured)


@registry.tool
async def marked() -> ToolOutput:
    return ToolOutput([Text("marked")], meta={"example.org/d": 4})


VALUES: Final[dict[str, Any]] = {
    "nan": {"deep": [1.0, math.nan]},
    "infinity": math.inf,
    "surrogate": "half \ud83d",
    "object": object(),
    "huge integer": 2**70,
    "nul": "a\0b",
    "terminal": "\x1b[31mred\x1b[0m \x1b]0;title\x07alert\nand\tmore\U000e0041",
    "hidden": {"\x7f": ["\U000e0041\x9b0m"]},
    "none": None,
}


@registry.tool
async def returns(which: str) -> Any:
    return VALUES[which]


@registry.tool
def returns_sync(which: str) -> Any:
    return VALUES[which]


@registry.tool
async def large(size: int) -> str:
    return "x" * size


@registry.tool
def large_sync(size: int) -> str:
    return "x" * size


@registry.tool
def rows() -> Any:
    """Returns a query set, and what is around the call."""
    Ledger.objects.get_or_create(key="row", defaults={"worker": "a test"})
    atomic = Value(connection.in_atomic_block)
    return Ledger.objects.filter(key="row").values("key", atomic=atomic)


@registry.tool(database=True)
async def rows_of_database() -> bool:
    return await Ledger.objects.filter(key="nothing").aexists()


# -- failures ---------------------------------------------------------------------


@registry.tool
async def fails(kind: str) -> str:
    return _fail(kind)


@registry.tool
def fails_sync(kind: str) -> str:
    return _fail(kind)


def _fail(kind: str) -> str:
    if kind == "tool error":
        raise ToolError("Read this.")
    if kind == "content":
        raise ToolError("unread", content=[Text("Look:"), Image(BYTES, "image/png")])
    if kind == "terminal":
        raise ToolError(VALUES["terminal"])
    if kind == "exit":
        sys.exit(3)
    if kind == "cancelled":
        raise asyncio.CancelledError
    if kind == "stop":
        raise StopIteration
    if kind == "cannot":
        raise ClientCannot("A kettle is needed.", {"extensions": {"kettle": {}}})
    raise ValueError("the secret of the inside")


@registry.tool
async def prints() -> str:
    sys.stdout.write("out\n")
    sys.stderr.write("err\n")
    return "printed"


@registry.tool(timeout=0.03)
async def hangs() -> str:
    await asyncio.Event().wait()
    return "never"


@registry.tool(timeout=0.03)
def hangs_sync() -> str:
    stage().released_thread.wait(60)
    return "too late"


@registry.prompt(timeout=0.03)
async def hanging_prompt() -> str:
    await asyncio.Event().wait()
    return "never"


@registry.tool(timeout=0.03)
async def survives() -> str:
    """Is told that its time is over, and answers all the same."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stage().told.append("survived")
    return "survived"


# -- waiting ----------------------------------------------------------------------


@registry.tool
async def waits(ctx: Context, say: str = "waited") -> str:
    """Waits until the test releases it; notes how it ended."""
    scene = stage()
    scene.entered.set()
    try:
        await scene.released.wait()
    except asyncio.CancelledError:
        scene.told.append("cancelled" if ctx.cancelled else "lost")
        raise
    scene.told.append("done")
    return say


@registry.tool
def waits_sync(ctx: SyncContext) -> str:
    """Waits in a thread until its call is cancelled or the test releases it."""
    scene = stage()
    scene.entered_thread.set()
    while not (ctx.cancelled or scene.released_thread.wait(0.001)):
        continue
    scene.told.append("cancelled" if ctx.cancelled else "done")
    ctx.log("info", "the end")
    return "waited"


@registry.tool
def enters_and_waits(line: str) -> str:
    Ledger.objects.create(key=line, worker="a test")
    stage().entered_thread.set()
    stage().released_thread.wait(60)
    return "waited"


@registry.tool
def surroundings() -> str:
    """Returns what is left in its thread, and leaves something."""
    found = f"{getattr(connection, 'tenant', None)} {get_language()}"
    connection.tenant = "left"  # type: ignore[attr-defined]
    activate("fr")
    return found


@registry.tool(timeout=0.03)
def enters_slowly(line: str) -> str:
    Ledger.objects.create(key=line, worker="a test")
    time.sleep(0.05)
    return "too late"


@registry.tool
async def stubborn(ctx: Context) -> str:
    """Catches its cancellation, tries to say something, and returns."""
    stage().entered.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stage().told.append("caught")
    return "an answer that nobody waits for"


@registry.tool
async def stubborn_talker(ctx: Context) -> str:
    """Catches its cancellation, and goes on talking."""
    stage().entered.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stage().told.append("caught")
        ctx.log("error", "more")
        stage().told.append("said more")
    return "an answer that nobody waits for"


@registry.tool
async def waits_and_refuses(ctx: Context) -> str:
    """Waits, and finds then that the client cannot do what is needed."""
    await waits(ctx)
    return _fail("cannot")


@registry.tool
async def talks(ctx: Context, after: str = "") -> str:
    """Says something, waits for the test, and says one thing more."""
    ctx.log("error", "first")
    stage().entered.set()
    await stage().released.wait()
    if after:
        ctx.log("error", after)
    return "talked"


@registry.tool(read_only=True)
async def peeks(ctx: Context, after: str = "") -> str:
    """Does the same, and may be called twice."""
    return await talks(ctx, after)


@registry.tool(idempotent=True)
async def turns_on(ctx: Context, after: str = "") -> str:
    """Changes something, and nothing more when it is called again."""
    return await talks(ctx, after)


@registry.tool
async def sends_away(
    ctx: Context, first: str = "first", at_once: bool = False, late: bool = False
) -> str:
    """Says something, sends its client away, waits for the test, and says more."""
    if first:
        ctx.log("error", first)
    if late:
        await stage().released.wait()
    ctx.reconnect(1.5)
    ctx.reconnect(9)
    stage().entered.set()
    if not at_once:
        await stage().released.wait()
        ctx.reconnect(9)
        ctx.log("error", "second")
    return "talked"


@registry.tool(read_only=True)
async def peeks_and_sends_away(
    ctx: Context, first: str = "first", at_once: bool = False
) -> str:
    """Does the same, and may be called twice."""
    return await sends_away(ctx, first, at_once)


# -- notifications ----------------------------------------------------------------


@registry.tool(read_only=True)
async def talks_and_asks(ctx: Context) -> str:
    """Says something, waits for the test, and asks."""
    ctx.log("error", "first")
    await stage().released.wait()
    return _ordered(await ctx.elicit("What?", Order))


@registry.tool
async def logs(ctx: Context) -> str:
    """Logs once at each level."""
    for level in LEVELS:
        ctx.log(level, {"at": level}, logger="drill")
    return "logged"


@registry.tool
def logs_sync(ctx: SyncContext) -> str:
    for level in LEVELS:
        ctx.log(level, level)
    return "logged"


@registry.tool
async def logs_wrongly(ctx: Context) -> str:
    ctx.log("loud", "hello")  # type: ignore[arg-type]
    return "logged"


@registry.tool
async def records() -> str:
    """Makes records of `logging`, as any library does."""
    for level in (10, 20, 30, 40, 50):
        logging.getLogger("shop.orders").log(level, "record %s", level)
    logging.getLogger("mcp_app.inner").error("ours")
    return "recorded"


@registry.tool
async def reports(
    ctx: Context, steps: Sequence[float], total: float | None = None, end: str = "done"
) -> str:
    """Reports each of these numbers."""
    for step in steps:
        ctx.progress(step, total, f"at {step:g}")
    if end == "fail":
        raise ToolError("It failed.")
    return end


@registry.tool
def reports_sync(ctx: SyncContext, count: int) -> str:
    for step in range(1, count + 1):
        ctx.progress(step)
    return "reported"


@registry.tool
def reports_late(ctx: SyncContext) -> str:
    """Reports, and does so once more when the call is over and the test lets it."""
    scene = stage()

    def late() -> None:
        scene.released_thread.wait(60)
        ctx.progress(2)
        ctx.log("emergency", "late")
        scene.told.append("late")

    ctx.progress(1)
    threading.Thread(target=late, daemon=True).start()
    return "reported"


@registry.tool
async def changes(ctx: Context, what: Sequence[str]) -> str:
    for each in what:
        ctx.changed(each)
    return "changed"


@registry.tool
def changes_sync(ctx: SyncContext, what: str) -> str:
    ctx.changed(what)
    return "changed"


# -- questions --------------------------------------------------------------------


@dataclass
class Order:
    item: str
    count: int = 1


@registry.tool
async def orders(ctx: Context, question: str = "What?", key: str | None = None) -> str:
    return _ordered(await ctx.elicit(question, Order, key=key))


@registry.tool
def orders_sync(ctx: SyncContext, question: str = "What?") -> str:
    return _ordered(ctx.elicit(question, Order))


def _ordered(answer: object) -> str:
    if isinstance(answer, Accepted):
        return f"{answer.data.count} {answer.data.item}"
    return type(answer).__name__.lower()


@registry.tool
async def orders_soon(ctx: Context) -> str:
    """Gives the person only a moment."""
    return _ordered(await ctx.elicit("Quick!", Order, timeout=0.02))


@registry.tool
async def visits(
    ctx: Context, url: str = "https://example.org/pay", paid: bool = True
) -> str:
    answer = await ctx.elicit_url("Pay there.", url)
    if paid:
        ctx.visited()
    return type(answer).__name__.lower()


@registry.tool
def visits_sync(ctx: SyncContext) -> str:
    answer = ctx.elicit_url("Pay there.", "https://example.org/pay", key="pay")
    ctx.visited("nothing")
    ctx.visited("pay")
    ctx.visited("pay")
    return type(answer).__name__.lower()


CHOICES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "size": {
            "type": "string",
            "oneOf": [
                {"const": "s", "title": "Small"},
                {"const": "l", "title": "Large"},
            ],
            "default": "s",
        },
        "gift": {"type": "boolean", "default": True},
    },
    "required": [],
}
SEVERAL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "l"]}}
    },
    "required": [],
}


@registry.tool
async def chooses(ctx: Context, several: bool = False) -> str:
    form = SEVERAL if several else CHOICES
    answer: ElicitAnswer[dict[str, Any]] = await ctx.elicit("Which?", form)
    return str(answer.data) if isinstance(answer, Accepted) else "nothing"


CONVERSATION: Final = [
    SamplingMessage(role="user", content=[Text("Look:"), Image(BYTES, "image/png")]),
    SamplingMessage(
        role="assistant", content=[ToolUse("use-1", "find", {"what": "tea"})]
    ),
    SamplingMessage(
        role="user",
        content=[ToolResult("use-1", [Text("green tea")], {"found": 1}, True)],
    ),
    SamplingMessage(role="user", content=[Audio(BYTES, "audio/wav")]),
    SamplingMessage(role="user", content=[ResourceLink("memo://fixed", "fixed")]),
]


@registry.tool
async def samples(ctx: Context, long: bool = False, tools: bool = False) -> str:
    """Asks the client's model, with all options where `long`."""
    if not long:
        sampled = await ctx.sample("Say something.", max_tokens=10)
    else:
        offered = ToolDefinition(name="find", description="Finds.")
        sampled = await ctx.sample(
            CONVERSATION,
            max_tokens=10,
            system="Be brief.",
            temperature=0.5,
            stop_sequences=["."],
            preferences=ModelPreferences(
                hints=["small"], cost=1, speed=0.5, intelligence=0
            ),
            metadata={"a": 1},
            tools=[offered] if tools else [],
            tool_choice="auto" if tools else None,
        )
    kinds = ",".join(block.type for block in sampled.content)
    return f"{sampled.role} {sampled.model} {kinds}: {sampled.text}"


@registry.tool
def samples_sync(ctx: SyncContext) -> str:
    return ctx.sample("Say something.", max_tokens=10).text


@registry.tool
async def samples_on(ctx: Context) -> str:
    """Calls whatever the model wants to be called, as long as it may."""
    messages = [SamplingMessage(role="user", content=[Text("Find it.")])]
    while True:
        sampled = await ctx.sample(
            messages, max_tokens=10, tools=[ToolDefinition(name="find")]
        )
        results = [
            ToolResult(each.id, [Text("nothing")])
            for each in sampled.content
            if isinstance(each, ToolUse)
        ]
        messages += [
            SamplingMessage(role=sampled.role, content=sampled.content),
            SamplingMessage(role="user", content=results),
        ]


@registry.tool
async def roots(ctx: Context) -> str:
    found = await ctx.list_roots()
    return " ".join(f"{root.uri}={root.name}" for root in found)


@registry.tool
def roots_sync(ctx: SyncContext) -> str:
    return " ".join(root.uri for root in ctx.list_roots())


@registry.tool
async def asks_many(ctx: Context) -> str:
    answers = await ctx.ask(
        order=Elicit("What?", Order),
        pay=ElicitUrl("Pay there.", "https://example.org/pay"),
        words=Sample("Say something.", max_tokens=10),
        places=Roots(),
    )
    return ",".join(f"{key}:{type(each).__name__}" for key, each in answers.items())


@registry.tool
def asks_many_sync(ctx: SyncContext) -> str:
    answers = ctx.ask(order=Elicit("What?", Order), places=Roots())
    return ",".join(answers)


@registry.tool
async def asks_twice(ctx: Context) -> str:
    """Asks, and asks again for what depends on the first answer."""
    first = _ordered(await ctx.elicit("First?", Order, key="first"))
    second = _ordered(await ctx.elicit(f"After {first}?", Order, key="second"))
    return f"{first}, {second}"


@registry.tool
async def asks_with_url(ctx: Context) -> str:
    field = {"type": "string", "title": "As on https://example.org/"}
    form = {"type": "object", "properties": {"item": field}}
    answer: Any = await ctx.elicit("See https://example.org/.", form)
    return type(answer).__name__


@registry.tool
async def asks_one_key_twice(ctx: Context) -> str:
    await ctx.elicit("First?", Order, key="one")
    return _ordered(await ctx.elicit("Second?", Order, key="one"))


@registry.tool
async def asks_changing(ctx: Context) -> str:
    """Asks under one key a question that is another one each time."""
    stage().told.append("asked")
    question = f"Question {len(stage().told)}?"
    return _ordered(await ctx.elicit(question, Order, key="order"))


@registry.tool
async def offers(ctx: Context) -> str:
    """Asks whom it can, and says so where it cannot."""
    try:
        return _ordered(await ctx.elicit("What?", Order))
    except ClientCannot as error:
        return f"cannot: {error.required}"


@registry.tool
async def swallows(ctx: Context) -> str:
    """Has a broad `except` around its question."""
    try:
        return _ordered(await ctx.elicit("What?", Order))
    except Exception as error:
        return f"swallowed {type(error).__name__}"


@registry.tool(atomic=False)
async def steps(ctx: Context, line: str) -> str:
    """Does a step once, between two questions."""
    await ctx.elicit("Sure?", Order, key="sure")
    number = await ctx.once("enter", _enter, line)
    await ctx.elicit("Really?", Order, key="really")
    return f"line {number}"


@registry.tool(atomic=False)
def steps_sync(ctx: SyncContext, line: str) -> str:
    ctx.elicit("Sure?", Order, key="sure")
    number = ctx.once("enter", _enter, line)
    ctx.elicit("Really?", Order, key="really")
    return f"line {number}"


def _enter(line: str) -> int:
    Ledger.objects.create(key=line, worker="here")
    return Ledger.objects.filter(key=line).count()


@registry.tool
async def steps_wrongly(ctx: Context) -> str:
    return str(await ctx.once("wait", asyncio.sleep, 0))


@registry.tool(atomic=True)
def asks_atomically(ctx: SyncContext) -> str:
    return _ordered(ctx.elicit("What?", Order))


# -- the context ------------------------------------------------------------------


@registry.tool
async def whoami(ctx: Context) -> dict[str, Any]:
    user = await ctx.user()
    again = await ctx.user()
    return {**_plain(ctx), "user": user and user.get_username(), "same": user is again}


@registry.tool
def whoami_sync(ctx: SyncContext) -> dict[str, Any]:
    user = ctx.user()
    return {**_plain(ctx), "user": user and user.get_username(), "same": True}


def _plain(ctx: Context | SyncContext) -> dict[str, Any]:
    return {
        "key": ctx.principal.key,
        "client": [ctx.client.name, ctx.client.version, ctx.client.title],
        "revision": ctx.revision,
        "server": ctx.server,
        "request": ctx.request_id,
        "cancelled": ctx.cancelled,
        "deadline": ctx.deadline is not None and 0 < ctx.deadline <= 60,
    }


# -- who may see what -------------------------------------------------------------


@registry.tool(permission=SECRET, tags=["private"], position=1)
async def secret() -> str:
    stage().told.append("secret ran")
    return "for few"


@registry.tool(tags=["private"], position=2)
async def open_to_all(ctx: Context) -> str:
    return ctx.principal.user_name


@registry.tool(tags=["private"], position=2)
async def asks_in_private(ctx: Context, line: str = "") -> str:
    return _ordered(await ctx.elicit("What?", Order, key="order"))


@registry.tool(tags=["private"], position=3, permission=SECRET)
async def secret_too() -> str:
    return "for few"


@registry.tool(tags=["private"], position=4)
async def changes_in_private(ctx: Context) -> str:
    ctx.changed("tools")
    return "changed"


@registry.tool(tags=["private"], position=4)
async def waits_in_private(ctx: Context) -> str:
    return await waits(ctx)


@registry.resource("vault://list", permission=SECRET, tags=["private"])
async def vault_list() -> str:
    return "gold"


@registry.resource("vault://item/{name}", permission=SECRET, tags=["private"])
async def vault_item(name: str) -> str:
    return name


@registry.resource("cellar://rack/{name}", permission=SECRET, tags=["private"])
async def rack(name: str) -> str:
    return name


@registry.resource("cellar://{+rest}", tags=["private"])
async def cellar(rest: str) -> str:
    return rest


@registry.complete("cellar://{+rest}", "rest")
async def complete_cellar(value: str) -> list[str]:
    return ["wine"]


@registry.resource("hall://list", tags=["private"], public=True, ttl_ms=5)
async def hall() -> str:
    return "open"


@registry.prompt(permission=SECRET, tags=["private"])
async def secret_prompt(word: str) -> str:
    return word


@registry.complete("secret_prompt", "word")
async def complete_secret(value: str) -> list[str]:
    return ["gold"]


# -- what groups and rules say ------------------------------------------------------


def has_short_name(asked: AccessRequest) -> bool:
    return asked.user is not None and len(asked.user.username) < 12


@registry.rule("modest", arguments=True)
def is_modest(asked: AccessRequest) -> bool:
    """Let everybody in, who then asks for little."""
    if asked.arguments is None:
        return True
    return int(str(asked.arguments.get("amount", 0))) <= 100


@registry.tool(groups=["tellers", "guards"], tags=["ruled"])
async def for_groups() -> str:
    return "for groups"


@registry.tool(rule=has_short_name, tags=["ruled"])
async def for_short_names() -> str:
    return "for short names"


@registry.tool(rule="modest", tags=["ruled"])
async def withdraw(amount: int) -> str:
    stage().told.append(f"withdrew {amount}")
    return str(amount)


@registry.rule("own-branch", arguments=True)
def is_own_branch(asked: AccessRequest) -> bool:
    """Let people in at the branch that their name begins with."""
    branch = (asked.arguments or {}).get("branch", "")
    return asked.user is not None and asked.user.username.startswith(branch)


@registry.tool(rule="own-branch", tags=["ruled"])
async def open_branch(branch: Annotated[str, Header("Branch")]) -> str:
    stage().told.append(f"opened {branch}")
    return branch


@registry.prompt(rule="modest", tags=["ruled"])
async def withdrawal(amount: str) -> str:
    return amount


@registry.resource(
    "ledger://{key}",
    model=Ledger,
    object_permission="drill.view_ledger",
    tags=["ruled"],
)
async def ledger(key: str) -> str:
    return f"the ledger {key}"


@registry.resource("safe://first", permission=SECRET, tags=["ruled"])
async def first_safe() -> str:
    return "the first safe"


@registry.resource("safe://{name}", tags=["ruled"])
async def any_safe(name: str) -> str:
    return f"some safe: {name}"


# -- resources --------------------------------------------------------------------


@registry.resource(
    "memo://fixed",
    title="A memo",
    description="It is fixed.",
    mime_type="text/plain",
    size=4,
    annotations=NOTED,
    icons=[ICON],
    meta={"example.org/e": 5},
    ttl_ms=1000,
    public=True,
    position=-1,
    tags=["shown"],
)
async def memo() -> str:
    return "memo"


@registry.resource("memo://value/{which}", position=-1, title="A value", icons=[ICON])
async def memo_value(which: str) -> Any:
    if which == "bytes":
        return BYTES
    if which == "raises":
        raise ValueError("the secret of the inside")
    return {"json": {"a": 1}, "missing": None}[which]


@registry.resource("memo://number/{number}")
async def memo_number(number: int) -> str:
    return f"number {number}"


@registry.resource("memo://asks")
async def memo_asks(ctx: Context) -> str:
    return _ordered(await ctx.elicit("What?", Order))


@registry.resource("memo://many")
async def memo_many() -> list[ResourceContents]:
    return [
        ResourceContents(uri="memo://many/1", text="one", meta={"example.org/f": 6}),
        ResourceContents(uri="memo://many/2", blob=BYTES),
    ]


# -- prompts ----------------------------------------------------------------------


@registry.prompt(
    title="Greetings",
    description="Greets somebody.",
    icons=[ICON],
    meta={"example.org/g": 7},
    position=-1,
    tags=["shown"],
)
async def greets(name: str, times: int = 1) -> str:
    """Greets.

    Args:
        name: Whom.
    """
    return f"Hello, {name}! " * times


@registry.prompt
async def prompt_blocks() -> PromptOutput:
    messages = [PromptMessage(block, "assistant") for block in BLOCKS]
    return PromptOutput(messages, description="All kinds of blocks.")


@registry.prompt
async def prompt_asks(ctx: Context) -> str:
    return _ordered(await ctx.elicit("What?", Order))


@registry.prompt
async def prompt_fails() -> str:
    raise ValueError("the secret of the inside")


@registry.prompt
async def prompt_surrogate() -> str:
    return "half \ud83d"


@registry.prompt
async def prompt_refuses() -> str:
    raise ToolError("There is nothing to greet.")


# -- completion -------------------------------------------------------------------


@registry.complete("greets", "name")
async def complete_name(value: str, arguments: dict[str, str]) -> list[str]:
    known = ["Ada", "Alan", "Grace", *arguments.values()]
    return [name for name in known if name.startswith(value)]


@registry.complete("greets", "times")
async def complete_times(value: str) -> Completion:
    return Completion(["1", "2"], total=9, has_more=True)


@registry.complete("memo://value/{which}", "which")
def complete_which(value: str) -> list[str]:
    return [f"{number:03}" for number in range(150)]


@registry.complete("prompt_fails", "anything")
async def complete_failing(value: str) -> list[str]:
    raise ValueError("the secret of the inside")


# -- pages ------------------------------------------------------------------------


def _declare_pages() -> None:
    for name in ("e", "b", "d", "a", "c"):
        place: Any = {"tags": ["paged"], "position": 0 if name in "bd" else 1}
        registry.tool(f"page_{name}", **place)(_nothing)
        registry.prompt(f"page_{name}", **place)(_nothing)
        registry.resource(f"page://{name}", name=f"page_{name}", **place)(_nothing)
        registry.resource(f"page://{name}/{{id}}", name="same", **place)(_item)


async def _nothing() -> str:
    return "nothing"


async def _item(id: str) -> str:
    return id


_declare_pages()
