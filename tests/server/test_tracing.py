"""Spans: whose parent is whose, what is recorded, and what is in no span."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db.backends.utils import CursorWrapper
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcp_app import Context
from mcp_app.egress.client import close_connections, connections
from mcp_app.egress.documents import ANONYMOUS_REQUEST
from mcp_app.egress.requests import SiteRequest
from mcp_app.egress.sites import usable_sites
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import Elicit
from mcp_app.process.runtime import Process
from mcp_app.server import recording, tracing
from tests.asgi_client import Client, JsonObject
from tests.egress.conftest import peer
from tests.egress.peer import Peer
from tests.egress.peer import answer as reply
from tests.old_client import OldClient
from tests.scripting import STATEFUL, STATELESS, TAG, Play, task_registry
from tests.serving import Connect, all_logged
from tests.tasks.conftest import TakeTasks, take_tasks
from tests.wire.middleware import WireCheck

__all__ = ["peer", "take_tasks"]

ALWAYS: Final = {"TRACING": {"sample": 1}}
NEVER: Final = {"TRACING": {"sample": 0}}
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER: Final = "0af7651916cd43dd8448eb211c80319c"
SPAN: Final = "00f067aa0ba902b7"
CANARY: Final = "canary"


def parent(trace_id: str = TRACE, flags: str = "01") -> str:
    return f"00-{trace_id}-{SPAN}-{flags}"


async def typed(count: int) -> int:
    return count


async def open_to_all(ctx: Context) -> str:
    return ctx.principal.user_name


async def cellar(rest: str) -> str:
    if rest == "broken":
        raise ValueError(CANARY)
    return rest


async def hall() -> str:
    return "open"


@pytest.fixture(autouse=True)
def _registry(scripted_tasks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = task_registry()
    registry.tool(typed)
    registry.tool(tags=[TAG])(open_to_all)
    registry.resource("cellar://{+rest}", tags=[TAG])(cellar)
    registry.resource("hall://list", tags=[TAG])(hall)
    monkeypatch.setattr("tests.behaviours.registry", registry)


Exported = Callable[[], list[ReadableSpan]]


@pytest.fixture(autouse=True)
def exported(monkeypatch: pytest.MonkeyPatch) -> Exported:
    """Return what takes the spans that were exported since the last time."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    def take() -> list[ReadableSpan]:
        spans = exporter.get_finished_spans()
        exporter.clear()
        return [*spans]

    return take


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.trace_id


def name_of(span: ReadableSpan) -> str:
    return span.name


def only(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    (found,) = (each for each in spans if each.name == name)
    return found


async def answer(ctx: Any) -> str:
    return "done"


# -- parents ---------------------------------------------------------------------------

META: Final = "meta"
HEADER: Final = "header"
NOTHING: Final = "nothing"
ALL: Final = {"TRACING": {"sample": 0, "parents": "all"}}
NONE: Final = {"TRACING": {"sample": 1, "parents": "none"}}


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize(
    ("mcp", "user", "said", "expected", "links"),
    [
        (NEVER, "ana", {META: parent()}, TRACE, []),
        (NEVER, "ana", {HEADER: parent()}, TRACE, []),
        (NEVER, "ana", {META: parent(), HEADER: parent(OTHER)}, TRACE, [OTHER]),
        (NEVER, "ana", {META: parent(flags="03")}, TRACE, []),
        # The caller's trace is not recorded: nothing is drawn.
        (ALWAYS, "ana", {META: parent(flags="00")}, NOTHING, []),
        (ALWAYS, "ana", {HEADER: parent(flags="00")}, NOTHING, []),
        (ALWAYS, "ana", {META: parent(flags="00"), HEADER: parent()}, NOTHING, []),
        # A stranger does not decide what is recorded.
        (NEVER, "", {META: parent()}, NOTHING, []),
        (NEVER, "", {HEADER: parent()}, NOTHING, []),
        (ALWAYS, "", {META: parent(flags="00")}, None, [TRACE]),
        (ALWAYS, "", {META: parent(), HEADER: parent(OTHER)}, None, [TRACE, OTHER]),
        (ALL, "", {META: parent()}, TRACE, []),
        (NONE, "ana", {META: parent()}, None, [TRACE]),
        (NEVER, "ana", {}, NOTHING, []),
        (ALWAYS, "ana", {}, None, []),
        # What is no trace context is none.
        (ALWAYS, "ana", {META: "00-1-2-01"}, None, []),
        (ALWAYS, "ana", {HEADER: parent("0" * 32)}, None, []),
        (ALWAYS, "ana", {META: 7}, None, []),
        (ALWAYS, "ana", {META: "x" * 100_000}, None, []),
        (NEVER, "ana", {META: f"ff-{TRACE}-{SPAN}-01"}, NOTHING, []),
        ({}, "ana", {META: parent(), HEADER: parent()}, NOTHING, []),
    ],
)
async def test_the_trace_that_a_call_is_part_of(
    connect: Connect,
    exported: Exported,
    version: str,
    user: str,
    said: JsonObject,
    expected: str | None,
    links: list[str],
) -> None:
    headers = {"x-user": user} if user else {}
    path = "/mcp/private" if user else "/mcp"
    client = await connect(version, path=path, headers=headers)
    meta = {"traceparent": said[META]} if META in said else {}
    more = {"traceparent": said[HEADER]} if HEADER in said else {}
    exported()
    # Of the first calls the form of a client's calls is learnt.
    for _ in range(3):
        params = {"name": "open_to_all", "arguments": {}, "_meta": meta}
        await client.request("tools/call", params, headers=more)
    spans = exported()
    assert len(spans) == (0 if expected == NOTHING else 3)
    for each in spans:
        assert parent_of(each) == (expected and int(expected, 16))
        assert [f"{link.context.trace_id:032x}" for link in each.links] == links


@pytest.mark.parametrize("mcp", [NEVER])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize("is_sampled", [True, False])
async def test_what_the_site_records_around_a_call(
    connect: Connect, exported: Exported, version: str, is_sampled: bool
) -> None:
    client = await connect(version)
    exported()
    flags = trace.TraceFlags(is_sampled)
    around = trace.SpanContext(int(TRACE, 16), int(SPAN, 16), False, flags)
    with trace.use_span(trace.NonRecordingSpan(around)):
        for _ in range(3):
            await client.call("typed", count=1)
        await client.request("tools/list")
    spans = exported()
    names = [*["tools/call typed"] * 3, "tools/list"]
    assert [*map(name_of, spans)] == names * is_sampled
    assert {*map(parent_of, spans)} <= {int(TRACE, 16)}


@pytest.mark.parametrize("mcp", [{"TRACING": {"sample": 0.5}}])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_request_is_drawn_once(
    connect: Connect,
    exported: Exported,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    client = await connect(version)
    exported()
    call = "tools/call", {"name": "typed", "arguments": {"count": 1}}
    # The second one is of a known caller.
    for method, params in (call, call, ("tools/list", {})):
        draws = [0.1, 0.9]
        monkeypatch.setattr(tracing, "random", partial(draws.pop, 0))
        await client.request(method, params)
        assert draws == [0.9]
        assert len(exported()) == 1


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_no_state_of_a_trace_is_logged(
    connect: Connect, exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(STATELESS, **PRIVATE)
    for state, kept in (
        ("rojo=00f067aa0ba902b7, fw@dt=t-61.rc", "rojo=00f067aa0ba902b7,fw@dt=t-61.rc"),
        ("x\nERROR forged", ""),
        ("a=1,CANARY=1", ""),
        # The floor of the extra would take a minute for it.
        (" " * 100_000, ""),
    ):
        exported()
        meta = {"traceparent": parent(), "tracestate": state}
        await client.request("prompts/list", {"_meta": meta})
        (span,) = exported()
        assert span.context.trace_state.to_header() == kept
    assert "opentelemetry" not in caplog.text


# -- what a span has -------------------------------------------------------------------

PRIVATE: Final[JsonObject] = {"path": "/mcp/private", "headers": {"x-user": "ana"}}


@pytest.mark.parametrize("mcp", [ALWAYS])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
@pytest.mark.parametrize(
    ("method", "params", "name", "attributes"),
    [
        (
            "tools/call",
            {"name": "open_to_all", "arguments": {}},
            "tools/call open_to_all",
            {
                "gen_ai.tool.name": "open_to_all",
                "gen_ai.operation.name": "execute_tool",
                "mcp_app.version": 0,
            },
        ),
        (
            "tools/call",
            {"name": "made_up", "arguments": {}},
            "tools/call",
            {
                "gen_ai.operation.name": "execute_tool",
                "error.type": "unknown",
                "rpc.response.status_code": "-32602",
            },
        ),
        (
            "resources/read",
            {"uri": "cellar://a/b"},
            "resources/read",
            {"mcp.resource.uri": "cellar://{+rest}", "mcp_app.version": 0},
        ),
        (
            "resources/read",
            {"uri": "hall://list"},
            "resources/read",
            {"mcp.resource.uri": "hall://list", "mcp_app.version": 0},
        ),
        ("tools/list", {}, "tools/list", {}),
    ],
)
async def test_names_and_attributes(
    connect: Connect,
    exported: Exported,
    version: str,
    method: str,
    params: JsonObject,
    name: str,
    attributes: JsonObject,
) -> None:
    client = await connect(version, **PRIVATE)
    exported()
    message = client.message(method, params)
    await client.sent(message)
    (span,) = exported()
    session = {} if client.session is None else {"mcp.session.id": handle_of(client)}
    assert (span.name, span.kind) == (name, trace.SpanKind.SERVER)
    assert span.attributes == {
        "mcp.method.name": method,
        "mcp.protocol.version": version,
        "jsonrpc.request.id": str(message["id"]),
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "mcp_app.server": "private",
        "mcp_app.principal": "user",
        **session,
        **attributes,
    }
    assert span.status.is_ok is ("error.type" not in attributes)
    assert span.status.description is None
    assert not span.events


def handle_of(client: Client) -> str:
    assert client.session is not None
    return sha256(client.session.encode()).hexdigest()[: recording.SESSION_HANDLE]


@pytest.mark.parametrize("mcp", [{"TRACING": {"sample": 1, "user": True}}])
async def test_what_a_site_says_itself(
    connect: Connect, play: Play, exported: Exported
) -> None:
    async def on_loop(ctx: Any) -> str:
        trace.get_current_span().set_attribute("shop", "Paris")
        return "done"

    def in_thread(ctx: Any) -> str:
        trace.get_current_span().set_attribute("shop", "Rome")
        return "done"

    client = await connect(STATELESS, **PRIVATE)
    await play("async", on_loop, client=client)
    await play("sync", in_thread, client=client)
    both = [each.attributes or {} for each in exported()]
    assert [(each["shop"], each["user.id"]) for each in both] == [
        ("Paris", "ana"),
        ("Rome", "ana"),
    ]


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_initialize_and_discover(
    application: WireCheck, exported: Exported
) -> None:
    client = Client(application, STATEFUL)
    await client.open()
    await Client(application, STATELESS).request("server/discover")
    assert {"initialize", "server/discover"} <= {*map(name_of, exported())}


@pytest.mark.parametrize("mcp", [NEVER])
async def test_initialize_over_sse(application: WireCheck, exported: Exported) -> None:
    client = OldClient(application, path="/mcp/private/sse", headers={"x-user": "ana"})
    await client.connect()
    hello = {**client.hello(None), "_meta": {"traceparent": parent()}}
    await client.request("initialize", hello)
    (span,) = exported()
    assert (span.name, parent_of(span)) == ("initialize", int(TRACE, 16))
    await client.leave()


# -- what a request waits for ----------------------------------------------------------


@pytest.mark.parametrize("mcp", [ALWAYS])
@pytest.mark.parametrize("tool", ["async", "sync"])
async def test_questions(
    connect: Connect, play: Play, exported: Exported, tool: str
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}

    async def on_loop(ctx: Any) -> str:
        await ctx.ask(a=Elicit("Who?", schema), b=Elicit("Where?", schema))
        return "done"

    def in_thread(ctx: Any) -> str:
        ctx.ask(a=Elicit("Who?", schema), b=Elicit("Where?", schema))
        return "done"

    client = await connect(STATEFUL, **PRIVATE)
    exported()
    script = on_loop if tool == "async" else in_thread
    reply = {"action": "accept", "content": {"name": "Bo"}}
    await play(tool, script, client=client, answer=lambda *_: reply)
    spans = exported()
    call = only(spans, f"tools/call {tool}")
    questions = [each for each in spans if each.name == "elicitation/create"]
    assert [each.kind for each in questions] == [trace.SpanKind.CLIENT] * 2
    for each in questions:
        assert each.parent is not None
        assert each.parent.span_id == call.context.span_id
        assert (call.start_time or 0) < (each.start_time or 0)
        assert (each.end_time or 0) < (call.end_time or 0)


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_the_run_of_a_task_has_a_trace_of_its_own(
    take_tasks: TakeTasks, exported: Exported
) -> None:
    begun = asyncio.Event()

    async def work(ctx: Any) -> str:
        await begun.wait()
        return "done"

    ana = await take_tasks()
    exported()
    task = await ana.begin("task_required", work, _meta={"traceparent": parent()})
    begun.set()
    await ana.until(task)
    spans = [each for each in exported() if each.name.endswith("task_required")]
    call, run = sorted(spans, key=lambda each: each.parent is None)
    assert (parent_of(call), parent_of(run)) == (int(TRACE, 16), None)
    assert "network.transport" not in (run.attributes or {})


@pytest.mark.parametrize("mcp", [ALWAYS])
@pytest.mark.parametrize("is_told", [True, False])
async def test_calls_of_other_sites(
    connect: Connect, play: Play, peer: Peer, exported: Exported, is_told: bool
) -> None:
    peer.send = reply(status=418)
    site = replace(usable_sites()["peer"], trace=is_told)
    request = SiteRequest(
        method="GET", path="/tickets/7", query="key=canary", log_path="/tickets/{id}"
    )

    async def work(ctx: Any) -> str:
        return str(
            (await connections().call_site(site, request, ANONYMOUS_REQUEST)).status
        )

    client = await connect(STATELESS, **PRIVATE)
    assert (await play("async", work, client=client)).text == "418"
    call, sent = reversed(exported())
    assert (sent.name, sent.kind) == ("GET peer", trace.SpanKind.CLIENT)
    assert sent.parent is not None
    assert sent.parent.span_id == call.context.span_id
    assert sent.attributes == {
        "http.request.method": "GET",
        "server.address": "127.0.0.1",
        "server.port": peer.port,
        "url.template": "/tickets/{id}",
        "http.response.status_code": 418,
        "error.type": "418",
    }
    context = sent.context
    told = [each[:52] for each in peer.received[0].header("traceparent")]
    expected = f"00-{context.trace_id:032x}-{context.span_id:016x}"
    assert told == [expected] * is_told
    await close_connections()


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_deliveries_are_recorded_by_themselves(
    process: Process, peer: Peer, exported: Exported
) -> None:
    peer.send = reply()
    site, request = usable_sites()["peer"], SiteRequest(method="POST", path="/")
    await connections().call_site(site, request, ANONYMOUS_REQUEST)
    await connections().call_site(site, request, ANONYMOUS_REQUEST, is_delivery=True)
    (span,) = exported()
    assert (span.name, span.parent) == ("POST peer", None)
    await close_connections()


# -- what is in no span ----------------------------------------------------------------


@pytest.mark.parametrize("mcp", [ALWAYS])
@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_no_span_has_what_callers_send_or_get(
    connect: Connect, play: Play, exported: Exported, version: str
) -> None:
    headers = {"x-user": "canary-user", "authorization": "Bearer canary-token"}
    client = await connect(version, path="/mcp/private", headers=headers)
    name = {"type": "object", "properties": {CANARY: {"type": "string"}}}

    async def fail(ctx: Any) -> str:
        raise ValueError(CANARY)

    async def refuse(ctx: Any) -> str:
        raise ToolError(CANARY)

    async def ask(ctx: Any) -> str:
        ctx.progress(1, 2, CANARY)
        return str(await ctx.elicit(CANARY, name, key="canary-key"))

    accepted = {"action": "accept", "content": {CANARY: CANARY}}
    for script in fail, refuse, ask:
        await play("async", script, client=client, answer=lambda *_: accepted)
    for method, params in (
        ("tools/call", {"name": "open_to_all", "arguments": {}}),
        ("tools/call", {"name": "open_to_all", "arguments": {CANARY: CANARY}}),
        ("tools/call", {"name": CANARY, "arguments": {CANARY: CANARY}}),
        ("resources/read", {"uri": f"cellar://{CANARY}"}),
        ("resources/read", {"uri": "cellar://broken"}),
        ("resources/read", {"uri": f"{CANARY}://"}),
        ("prompts/get", {"name": CANARY, "arguments": {CANARY: CANARY}}),
        ("tools/list", {"cursor": CANARY}),
        (CANARY, {}),
    ):
        meta = {"baggage": f"{CANARY}=1", CANARY: CANARY}
        await client.request(method, {**params, "_meta": meta})
    text = "".join(each.to_json() for each in exported())
    assert text.count("tools/call async") > 2
    assert CANARY not in text
    assert client.session is None or client.session not in text


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_background_work_is_part_of_no_request(
    connect: Connect,
    play: Play,
    process: Process,
    exported: Exported,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execute = CursorWrapper.execute

    def recorded(cursor: Any, *arguments: Any) -> Any:
        # As a package does that records statements.
        with trace.get_tracer("sql").start_as_current_span("sql") as span:
            span.set_attribute("thread", threading.current_thread().name)
            return execute(cursor, *arguments)

    monkeypatch.setattr(CursorWrapper, "execute", recorded)
    client = await connect(STATEFUL, **PRIVATE)

    def change(ctx: Any) -> str:
        ctx.changed("tools")
        ctx.log("error", "first")
        return str(User.objects.count())

    for _ in range(3):
        await play("sync", change, client=client)
        await process.gate.wait_for_check()
    assert process.audit is not None
    await process.audit.wait_until_written()
    await client.visit("DELETE").done()
    await all_logged(process.log)
    spans = exported()
    requests = {each.context.trace_id: each for each in spans if each.name != "sql"}
    statements = [each for each in spans if each.name == "sql"]
    assert len(requests) == 4
    threads = {str((each.attributes or {})["thread"]) for each in statements}
    assert {"mcp-checks", "mcp-calls", "mcp-writer"} <= threads
    assert any(each.parent for each in statements)
    for each in statements:
        if each.parent is None:
            continue
        call = requests[each.parent.trace_id]
        assert (call.start_time or 0) <= (each.start_time or 0)
        assert (each.end_time or 0) <= (call.end_time or 0)


@pytest.mark.parametrize("mcp", [ALWAYS])
async def test_an_ending_process_sends_what_it_has_recorded(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert process.tracing is not None
    monkeypatch.setattr(process.tracing, "_tracer", provider.get_tracer("mcp_app"))
    await (await connect(STATELESS)).call("typed", count=1)
    assert not exporter.get_finished_spans()
    # A server may end by its signal: nothing that is to run at exit runs then.
    await process.drain()
    assert exporter.get_finished_spans()
    provider.shutdown()


class Broken(SpanProcessor):
    def __init__(self, where: str) -> None:
        self._where = where

    def on_start(self, *_: object, **__: object) -> None:
        assert self._where != "start"

    def on_end(self, _: object) -> None:
        assert self._where != "end"


@pytest.mark.parametrize("mcp", [ALWAYS])
@pytest.mark.parametrize("where", ["start", "end"])
async def test_a_request_is_answered_though_its_span_fails(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Broken(where))
    assert process.tracing is not None
    monkeypatch.setattr(process.tracing, "_tracer", provider.get_tracer("mcp_app"))
    await (await connect(STATELESS)).call("typed", count=1)
