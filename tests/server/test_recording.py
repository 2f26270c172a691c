"""What is kept of each kind of call, and of each way in which it ends."""

from __future__ import annotations

import asyncio
import json
import logging
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.audit.writing import MAX_ERROR_LENGTH, SHORT_ARGUMENTS
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.log_secrets import BLOT
from mcp_app.interface.principal import Principal, Rights
from mcp_app.models import Call, Tool
from mcp_app.models.fields import digest
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.revisions import LATEST
from mcp_app.server import dispatch
from mcp_app.server.handlers import HANDLERS
from mcp_app.server.request import Request
from mcp_app.server.run import End, Run
from tests.asgi_client import Client, JsonObject
from tests.audit.reading import counted, kept
from tests.behaviours import Stage
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

HI: Final = '{"content":[{"type":"text","text":"a"}]}'
ERAS: Final = (STATEFUL, STATELESS)
USER: Final = {"x-user": "maria", "x-client": "family"}


def tool(name: str, /, **arguments: Any) -> tuple[str, JsonObject]:
    return "tools/call", {"name": name, "arguments": arguments}


def prompt(name: str, /, **arguments: str) -> tuple[str, JsonObject]:
    return "prompts/get", {"name": name, "arguments": arguments}


def resource(uri: str) -> tuple[str, JsonObject]:
    return "resources/read", {"uri": uri}


def completion(name: str, argument: str) -> tuple[str, JsonObject]:
    return "completion/complete", {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": "a"},
    }


NUMBERS: Final = "memo://number/{number}"
BROKEN: Final = tool("broken_promise", kind="other")
CALLS: Final[list[tuple[tuple[str, JsonObject], str, str, Outcome, str]]] = [
    (tool("drill_add", a=1, b=2), "tool", "drill_add", Outcome.ANSWERED, ""),
    (tool("drill_add_sync", a=1, b=2), "tool", "drill_add_sync", Outcome.ANSWERED, ""),
    (resource("memo://asks-no"), "resource", "", Outcome.UNKNOWN, "not found"),
    (resource("memo://many"), "resource", "memo://many", Outcome.ANSWERED, ""),
    (resource("memo://number/7"), "template", NUMBERS, Outcome.ANSWERED, ""),
    (resource("memo://number/x"), "template", NUMBERS, Outcome.ARGUMENTS, "not found"),
    (prompt("greets", name="a"), "prompt", "greets", Outcome.ANSWERED, ""),
    (prompt("greets"), "prompt", "greets", Outcome.ARGUMENTS, "needs the argument"),
    (prompt("greets", name="a", times="x"), "prompt", "greets", Outcome.ARGUMENTS, ""),
    (prompt("prompt_fails"), "prompt", "prompt_fails", Outcome.CRASHED, "error number"),
    (prompt("hanging_prompt"), "prompt", "hanging_prompt", Outcome.TIMED_OUT, "0.03"),
    (prompt("no_way"), "prompt", "", Outcome.UNKNOWN, "Unknown prompt: no_way"),
    (completion("greets", "name"), "completion", "greets", Outcome.ANSWERED, ""),
    (completion("no_way", "name"), "completion", "", Outcome.UNKNOWN, "no_way"),
    (tool("no_way"), "tool", "", Outcome.UNKNOWN, "Unknown tool: no_way"),
    (tool("typed", count="x"), "tool", "typed", Outcome.ARGUMENTS, "$.count (type)"),
    (("tools/call", {"name": 7}), "tool", "", Outcome.INVALID, "params.name"),
    (tool("fails", kind="cannot"), "tool", "fails", Outcome.INCAPABLE, "kettle"),
    (tool("fails", kind="content"), "tool", "fails", Outcome.TOOL_ERROR, "Look:"),
    (tool("fails", kind="tool error"), "tool", "fails", Outcome.TOOL_ERROR, ""),
    (tool("fails", kind="exception"), "tool", "fails", Outcome.CRASHED, "error number"),
    (tool("hangs"), "tool", "hangs", Outcome.TIMED_OUT, "0.03 seconds"),
    (tool("hangs_sync"), "tool", "hangs_sync", Outcome.TIMED_OUT, "0.03 seconds"),
    (tool("large", size=2_000_000), "tool", "large", Outcome.TOO_LARGE, "too large"),
    (BROKEN, "tool", "broken_promise", Outcome.SHAPE, "not match its output schema"),
    (tool("returns", which="nan"), "tool", "returns", Outcome.SHAPE, "The result of"),
]


@pytest.mark.parametrize("version", ERAS)
async def test_every_call_is_kept_as_it_ended(
    client: Client, process: Process, version: str
) -> None:
    for (method, params), *_ in CALLS:
        await client.request(method, params)
    rows = await kept(process)
    session = digest(client.session)[:16] if client.session else ""
    for row, (request, kind, name, outcome, said) in zip(rows, CALLS, strict=True):
        assert (row.kind, row.name, row.outcome) == (kind, name, outcome), request
        assert said in row.error, request
        assert bool(row.error) is (outcome is not Outcome.ANSWERED), request
        assert bool(row.failure) is (outcome is Outcome.CRASHED), request
        assert row.failure in row.error
        assert (row.server, row.revision) == ("default", version)
        assert (row.client_name, row.client_version) == ("drill-client", "1.0")
        assert row.size > 0
        assert row.took_us > 0
        assert row.session == session
        assert (row.principal, row.user_id, row.user_name) == ("anonymous", "", "")
    sums: dict[tuple[str, str, str, str], int] = {}
    for _, kind, name, outcome, _ in CALLS:
        key = "default", kind, name, outcome.value
        sums[key] = sums.get(key, 0) + 1
    assert await counted() == sums


# -- values -----------------------------------------------------------------------

LOGIN: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "sku": {},
        "note": {"type": "string"},
        "pin": {"anyOf": [{"$ref": "#/$defs/pin"}, {"type": "null"}]},
        "code": {"type": "string", "format": "password"},
    },
    "$defs": {"pin": {"type": "string", "writeOnly": True}},
}
SENT: Final[JsonObject] = {
    "sku": {"id": "\0é", "apiKey": "canary", "said": "Bearer canary"},
    **dict.fromkeys(("note", "pin", "code", "password"), "canary"),
}
KEPT: Final[JsonObject] = {
    "sku": {"id": "\0é", "apiKey": BLOT, "said": BLOT},
    **dict.fromkeys(("note", "pin", "code", "password"), BLOT),
}


SECRET_SCHEMA: Final[JsonObject] = {"format": "password"}


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": SECRET_SCHEMA},
        {"patternProperties": {"^p": SECRET_SCHEMA}},
        {"allOf": [{"additionalProperties": {"$ref": "#/$defs/pin"}}]},
    ],
)
async def test_members_that_only_a_pattern_names_may_be_secret(
    client: Client, process: Process, schema: JsonObject
) -> None:
    schema = {"properties": {"sku": {}, "note": {}}, **schema, "$defs": LOGIN["$defs"]}
    row = Tool(name="keeps", config=HI, input_schema=json.dumps(schema))
    row.keeps_values, row.hidden_values = True, "note"
    await writer.run(published, row)
    await process.check_for_changes()
    await client.call("keeps", sku=["a"], note="canary", pin2="canary")
    [call] = await kept(process)
    assert json.loads(call.arguments) == {"sku": ["a"], "note": BLOT, "pin2": BLOT}
    await writer.run(row.delete)


@pytest.mark.parametrize("version", ERAS)
async def test_values_are_kept_where_staff_say_so_and_without_secrets(
    connect: Connect, process: Process, version: str
) -> None:
    row = Tool(name="keeps", config=HI, input_schema=json.dumps(LOGIN))

    def publish(keeps: bool) -> None:
        row.keeps_values, row.hidden_values = keeps, "note\ngone"
        row.save()
        published(row)

    client = await connect(version)
    sent = [SENT, {"sku": "a" * 3_000}, {"sku": "a" * 4_096}, {}, {"sku": 1}]
    for keeps in (False, True, False):
        await writer.run(publish, keeps)
        await process.check_for_changes()
        for arguments in sent:
            assert not (await client.call("keeps", **arguments)).result.get("isError")
    texts = [row.arguments for row in await kept(process)]
    assert texts[:5] == texts[10:] == [""] * 5
    values = [text and json.loads(text) for text in texts[5:10]]
    assert values == [KEPT, sent[1], "", {}, sent[4]]
    await writer.run(row.delete)


# -- whose calls ------------------------------------------------------------------


async def test_whose_call_it_was(connect: Connect, process: Process) -> None:
    client = await connect(STATEFUL, path="/mcp/private", headers=USER)
    await client.call("open_to_all")
    [row] = await kept(process)
    assert (row.principal, row.user_id, row.user_name) == ("user", "maria", "maria")
    assert (row.principal_client, row.server) == ("family", "private")


async def test_what_is_hidden_is_kept_by_its_name(
    connect: Connect, process: Process
) -> None:
    client = await connect(STATELESS, path="/mcp/private", headers=USER)
    asked = [
        *(tool("secret"), prompt("secret_prompt"), resource("vault://list")),
        completion("secret_prompt", "word"),
    ]
    told = [(await client.request(*each)).error["code"] for each in asked]
    assert set(told) == {-32602}
    rows = await kept(process)
    assert {row.outcome for row in rows} == {"forbidden"}
    names = ["secret", "secret_prompt", "vault://list", "secret_prompt"]
    assert [row.name for row in rows] == names
    assert all(row.error for row in rows)


async def test_what_a_client_calls_itself_is_cut(
    client: Client, process: Process
) -> None:
    names: list[Any] = [
        {"name": "x" * 1_000, "version": "y" * 1_000},
        {"name": "a\0b\U0001f4a5", "version": "1\0"},
        {"name": "é" * 128, "version": "é" * 64},
    ]
    for info in names:
        meta = {"io.modelcontextprotocol/clientInfo": info}
        method, params = tool("drill_add", a=1, b=1)
        found = await client.request(method, {**params, "_meta": meta})
        assert found.text == "2"
    told = [(row.client_name, row.client_version) for row in await kept(process)]
    assert told == [("x" * 128, "y" * 64), ("ab\U0001f4a5", "1"), ("é" * 128, "é" * 64)]


async def test_a_client_may_say_nothing_of_itself(
    client: Client, process: Process
) -> None:
    message = client.message(*tool("drill_add", a=1, b=1))
    for info in ({"name": 1, "version": []}, 7, None):
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = info
        if info is None:
            del message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]
        await client.sent(message)
    told = [(row.client_name, row.client_version) for row in await kept(process)]
    assert set(told) == {("", "")}


async def test_which_version_was_called(connect: Connect, process: Process) -> None:
    def made() -> Tool:
        row = Tool(name="versioned", config=HI)
        published(row)
        row.description = "Another text."
        row.save()
        published(row)
        return row

    row = await writer.run(made)
    client = await connect(STATELESS)
    await client.call("versioned")
    # Code declares it, and nobody has published anything about it.
    await client.call("typed", count=1)
    assert [each.version for each in await kept(process)] == [2, 0]
    await writer.run(row.delete)


# -- what is kept of arguments -------------------------------------------------------


async def test_of_arguments_there_are_a_size_and_a_digest(
    client: Client, process: Process
) -> None:
    canary = "hunter2-canary"
    long = canary + "x" * SHORT_ARGUMENTS
    given: list[JsonObject] = [
        *({"count": 1, "text": canary}, {"text": canary, "count": 1}),
        *({"count": 2, "text": canary}, {"count": 1, "text": long}),
        *({"text": long, "count": 1}, {"count": canary}, {"count": 1, "kind": canary}),
        {"count": 1, "options": {"a": canary}},
    ]
    for arguments in given:
        await client.call("typed", **arguments)
    await client.request(*prompt("greets", name=canary))
    await client.request(*resource(f"memo://value/{canary}"))
    await client.request(*completion("greets", "name"))
    rows = await kept(process)
    text = repr(await writer.run(lambda: list(Call.objects.values())))
    assert canary not in text
    sizes = [len(jsonrpc.canonical(each)) for each in given]
    assert [row.arguments_size for row in rows[: len(given)]] == sizes
    first, same, other, big, same_big, *_ = [row.arguments_digest for row in rows]
    assert first == same
    assert big == same_big
    assert len({first, other, big}) == 3
    assert {len(row.arguments_digest) for row in rows} == {32}
    assert first != digest(jsonrpc.canonical(given[0]))[:32]


@pytest.mark.parametrize("mcp", [{}, {"LIMITS": {"nodes_in_thread": 10}}])
@pytest.mark.parametrize("version", ERAS)
async def test_many_arguments_are_kept_as_few_are(
    client: Client, process: Process
) -> None:
    """A thread writes them, also those of a call that is refused."""
    given: JsonObject = {"count": 1, "names": ["n"] * 2_000}
    await client.call("typed", **given)
    await client.call("typed", **{**given, "count": "many"})
    await client.call("nothing", **given)
    sizes = [row.arguments_size for row in await kept(process)]
    size = len(jsonrpc.canonical(given))
    assert sizes == [size, size + len('"many"') - 1, size]


@pytest.mark.parametrize("arguments", [None, {}])
async def test_a_call_without_arguments(
    client: Client, process: Process, arguments: JsonObject | None
) -> None:
    params = {"name": "whoami"}
    if arguments is not None:
        params["arguments"] = arguments  # type: ignore[assignment]
    await client.request("tools/call", params)
    [row] = await kept(process)
    assert row.arguments_size == (0 if arguments is None else 2)
    assert bool(row.arguments_digest) is (arguments is not None)


async def test_what_the_client_was_told_is_cut(
    stateful: Client, process: Process
) -> None:
    await stateful.call("typed", count=1, **{f"unknown{i}": 1 for i in range(200)})
    [row] = await kept(process)
    assert row.outcome == "arguments"
    assert len(row.error) == MAX_ERROR_LENGTH


# -- how calls end without an answer -----------------------------------------------


async def test_a_call_that_its_client_cancels(
    stateful: Client, process: Process, stage: Stage
) -> None:
    message = stateful.message(*tool("waits"))
    visit = stateful.post(message)
    await stage.entered.wait()
    await stateful.notify("notifications/cancelled", {"requestId": message["id"]})
    await visit.body()
    [row] = await kept(process)
    assert (row.outcome, row.size, row.name) == ("cancelled", 0, "waits")


async def test_a_client_that_leaves(
    client: Client, process: Process, stage: Stage
) -> None:
    visit = client.begin(*tool("waits"))
    await stage.entered.wait()
    await visit.leave()
    [row] = await kept(process)
    assert (row.outcome, row.size) == ("client_gone", 0)


async def test_a_stop(stateful: Client, process: Process, stage: Stage) -> None:
    visit = stateful.begin(*tool("waits"))
    await stage.entered.wait()
    for run in process.running:
        run.stop(End.SHUT_DOWN)
    await visit.messages()
    [row] = await kept(process)
    assert (row.outcome, row.name) == ("shut_down", "waits")
    assert row.error.startswith("This process stopped")


async def test_a_call_that_asks_first(client: Client, process: Process) -> None:
    await client.request(*tool("orders"))
    [row] = await kept(process)
    assert row.outcome == "asked"
    assert row.error == ""


async def test_a_fault_of_ours(
    connect: Connect,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: object) -> JsonObject:
        raise RuntimeError("the inside")

    client = await connect(STATELESS)
    monkeypatch.setattr(dispatch, "HANDLERS", {**HANDLERS, "prompts/get": broken})
    with caplog.at_level(logging.CRITICAL, "mcp_app.server"):
        await client.request(*prompt("greets"))
    [row] = await kept(process)
    assert (row.outcome, row.error) == (
        "failed",
        "The server failed; its log says why.",
    )


async def test_what_breaks_out_of_everything_is_a_fault_of_ours() -> None:
    async def break_out(_: Run) -> JsonObject:
        raise GeneratorExit

    parts: Any = SimpleNamespace(audit=None, tracing=None)
    catalog: Any = None
    caller = (Principal.ANONYMOUS, Rights())
    run = Run(Request(parts, catalog, *caller, LATEST, 1, "tools/list", {}, {}))
    with pytest.raises(GeneratorExit):
        await dispatch.answer_request(run, break_out)
    assert run.ending.outcome == "failed"


# -- what is no call ------------------------------------------------------------------


async def test_what_is_no_call_is_not_kept(connect: Connect, process: Process) -> None:
    for version in ERAS:
        client = await connect(version)
        for method in ("tools/list", "prompts/list", "resources/list", "no/method"):
            await client.request(method)
    client = await connect(STATEFUL)
    await client.request("ping")
    await client.request("resources/subscribe", {"uri": "memo://many"})
    assert await kept(process) == []


async def test_what_is_refused_at_the_door_is_not_kept(
    connect: Connect, process: Process
) -> None:
    client = await connect(STATELESS)
    call = client.message(*tool("drill_add", a=1, b=1))
    for headers in (
        *({"host": "evil.example"}, {"origin": "http://evil.example"}),
        *({"content-type": "text/plain"}, {"mcp-name": "another"}),
    ):
        assert (await client.sent(call, headers)).status >= 400
    nobody = await connect(STATELESS, path="/mcp/private", headers={})
    for headers in ({}, {"x-user": "nobody"}):
        found = await nobody.request(*tool("secret"), headers=headers)
        assert found.status == 401
    assert await kept(process) == []
    assert await counted() == {}


async def test_each_request_of_a_batch_is_a_call(
    connect: Connect, process: Process
) -> None:
    client = await connect("2025-03-26")
    await client.sent(
        [
            client.message(*tool("typed", count=1)),
            client.message(*tool("drill_add", a=1, b=1)),
            client.message("ping"),
        ]
    )
    assert {row.name for row in await kept(process)} == {"typed", "drill_add"}


async def test_a_call_that_is_answered_again_is_one_call(
    stateful: Client, process: Process
) -> None:
    message = stateful.message(*tool("drill_ledger", key="once", seconds=0))
    answers = [(await stateful.sent(message)).result for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert [row.name for row in await kept(process)] == ["drill_ledger"]


# -- switched ---------------------------------------------------------------------


@pytest.mark.parametrize("mcp", [{"AUDIT": "off"}])
async def test_off(stateful: Client, process: Process) -> None:
    assert (await stateful.call("drill_add", a=1, b=1)).text == "2"
    assert process.audit is None
    await process.drain()
    assert await writer.run(Call.objects.count) == 0


@pytest.mark.parametrize("mcp", [{"AUDIT": "strict"}])
@pytest.mark.parametrize("version", ERAS)
async def test_strict_answers_when_the_call_is_kept(
    client: Client, process: Process
) -> None:
    for number in range(1, 4):
        await client.call("drill_add", a=1, b=1)
        assert await writer.run(Call.objects.count) == number
    visits = [client.begin(*tool("drill_add", a=1, b=1)) for _ in range(20)]
    await asyncio.gather(*(visit.messages() for visit in visits))
    assert await writer.run(Call.objects.count) == 23
