"""A client in the process gets what one gets over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.principal import CONSOLE, Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.transports import in_process
from mcp_app.transports.in_process import (
    Caller,
    Failure,
    InProcessClient,
    Message,
    SessionRefused,
)
from mcp_app.transports.stdio.connection import NotServed, NotSignedIn
from tests.asgi_client import EVERYTHING, Client, JsonObject
from tests.drill.rows import PROMPTS, RESOURCES, TOOLS
from tests.serving import PATIENCE_S
from tests.streams.logging_rows import until
from tests.wire.middleware import WireCheck

NEWEST: Final = ("2025-11-25", "2026-07-28")
ANYBODY: Final = Principal(kind=CONSOLE, client="ana")
BY_TYPE: Final[dict[str, object]] = {
    "integer": 1,
    "number": 0.01,
    "string": "words",
    "boolean": True,
    "array": [],
    "object": {},
}
OTHERWISE: Final = (
    "drill_whoami",
    "drill_ledger",
    "drill_ask_twice",
    "test_reconnection",
    "test_x_mcp_header",
)
"""Their answers name the caller or count calls, come to who returns, or need a header.
"""
ERROR_NUMBER: Final = re.compile(r"error number in the log is [0-9a-f]{8}")
RANDOM: Final = ("requestState", "elicitationId", "progressToken")


def client_of(
    process: Process, version: str, principal: Principal = ANYBODY, **more: Any
) -> InProcessClient:
    caller = Caller(
        principal=principal,
        person="u1",
        revision=REVISIONS[version],
        name="Try it",
        capabilities=EVERYTHING,
    )
    return InProcessClient(process, more.pop("slug", "default"), caller, **more)


def decline(method: str, params: JsonObject) -> JsonObject:
    """Answer over HTTP what `in_process.decline` answers here."""
    try:
        return in_process.decline_question(method, params)
    except Failure as failure:
        return {"error": {"code": failure.code, "message": failure.message}}


def fitting(schema: Mapping[str, Any]) -> JsonObject:
    properties = schema.get("properties", {})
    return {name: _value(schema, each) for name, each in properties.items()}


def variants(schema: Mapping[str, Any]) -> list[JsonObject]:
    """Return arguments that fit, that are written as texts, and that do not fit."""
    fits = fitting(schema)
    texts = {name: json.dumps(value) for name, value in fits.items()}
    return [fits, texts, dict.fromkeys(fits, ())]


def _value(schema: Mapping[str, Any], part: JsonObject) -> object:
    if "enum" in part:
        return part["enum"][0]
    if "anyOf" in part:
        return _value(schema, part["anyOf"][0])
    if "$ref" in part:
        return _value(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    return BY_TYPE.get(str(part.get("type")), "words")


def same(answer: JsonObject) -> JsonObject:
    """Return an answer without what differs from call to call."""
    text = json.dumps({name: answer[name] for name in answer.keys() - {"id"}})
    found: JsonObject = json.loads(
        ERROR_NUMBER.sub("error number in the log is …", text),
        object_hook=lambda members: {
            name: "…" if name in RANDOM else value for name, value in members.items()
        },
    )
    return found


async def requests(process: Process) -> list[tuple[str, JsonObject]]:
    """Return a request of each definition that fits, and one that does not."""
    await process.gate.wait_until_fresh(process.loop.time())
    tools = process.catalogs.by_slug["default"].tools
    names = [row["name"] for row in TOOLS if row["name"] not in OTHERWISE]
    calls: list[JsonObject] = [
        {"name": name, "arguments": arguments}
        for name in names
        for arguments in variants(tools[name].definition.input_schema)
    ]
    prompts = [
        {"name": row["name"], "arguments": arguments}
        for row in PROMPTS
        for arguments in ({"arg1": "a", "arg2": "b", "resourceUri": "test://a"}, {})
    ]
    uris = [row["uri"] for row in RESOURCES]
    uris += ["test://template/7/data", "test://template/a%20b/data", "test://no"]
    return [
        *(("tools/call", params) for params in calls),
        ("tools/call", {"name": "no_such_tool", "arguments": {}}),
        *(("prompts/get", params) for params in prompts),
        *(("resources/read", {"uri": uri}) for uri in uris),
        ("tools/list", {}),
        ("prompts/list", {}),
        ("no/such", {}),
    ]


async def differing(
    process: Process, application: WireCheck, version: str, **more: Any
) -> list[tuple[JsonObject, JsonObject, JsonObject]]:
    """Return the requests that are answered otherwise in the process."""
    found = []
    client = await Client(application, version).open()
    for method, params in await requests(process):
        if client.revision.sessions:
            wire = await client.talk(method, params, decline)
        else:
            wire = await client.request(method, params)
        one = client_of(process, version, **more)
        here = json.loads(await one.send_request(method, params))
        if same(wire.answer) != same(here):
            found.append((params, same(wire.answer), same(here)))
    return found


@pytest.mark.parametrize(
    "version",
    [
        version if version in NEWEST else pytest.param(version, marks=pytest.mark.long)
        for version in REVISIONS
    ],
)
async def test_the_same_as_on_the_wire(
    process: Process, application: WireCheck, version: str
) -> None:
    assert await differing(process, application, version) == []


async def test_what_reads_arguments_otherwise_is_noticed(
    process: Process, application: WireCheck
) -> None:
    adapters = replace(process.adapters, coerce=False)
    found = await differing(process, application, NEWEST[1], adapters=adapters)
    names = [params["name"] for params, _, _ in found]
    assert "drill_add" in names


async def test_messages_before_the_answer_come_in_their_order(process: Process) -> None:
    messages: list[Message] = []
    client = client_of(process, NEWEST[0], observe=messages.append)
    params = {"name": "drill_count", "arguments": {"n": 3, "delay_ms": 1}}
    answer = await client.send_request("tools/call", params)
    assert json.loads(answer)["result"]["content"]
    assert messages[-1] == Message(False, answer)
    methods = [
        (each.from_client, json.loads(each.text).get("method")) for each in messages
    ]
    assert methods[0] == (True, "initialize")
    assert methods[2:4] == [(True, "notifications/initialized"), (True, "tools/call")]
    assert methods[4:-1] == [(False, "notifications/progress")] * 3


async def test_without_streams_only_the_answer_comes(process: Process) -> None:
    messages: list[Message] = []
    observe = messages.append
    client = client_of(process, NEWEST[1], observe=observe, streams=False)
    params = {"name": "drill_count", "arguments": {"n": 3, "delay_ms": 1}}
    answer = await client.send_request("tools/call", params)
    assert [each.from_client for each in messages] == [True, False]
    assert messages[-1].text == answer


async def test_questions_of_a_session_are_answered(process: Process) -> None:
    def respond(method: str, params: JsonObject) -> JsonObject:
        assert method == "elicitation/create"
        return {"action": "accept", "content": {"answer": "blue"}}

    client = client_of(process, NEWEST[0], respond=respond)
    params = {"name": "drill_ask", "arguments": {"question": "Which colour?"}}
    answer = json.loads(await client.send_request("tools/call", params))
    assert answer["result"]["content"] == [{"type": "text", "text": "blue"}]


async def test_a_question_without_streams_is_refused_as_on_the_wire(
    process: Process,
) -> None:
    client = client_of(process, NEWEST[0], streams=False)
    params = {"name": "drill_ask", "arguments": {"question": "Which colour?"}}
    answer = json.loads(await client.send_request("tools/call", params))
    assert answer["result"]["isError"]
    assert "(WSGI)" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", NEWEST)
async def test_a_request_that_is_cancelled_ends_its_call(
    process: Process, version: str
) -> None:
    params = {"name": "drill_sleep", "arguments": {"seconds": PATIENCE_S}}
    client = client_of(process, version)
    task = asyncio.create_task(client.send_request("tools/call", params))
    while not len(process.running):
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not len(process.running))


async def test_who_may_not_come_in_is_told(process: Process) -> None:
    with pytest.raises(NotSignedIn, match=r"not public\. Sign in first"):
        await client_of(process, NEWEST[1], slug="private").check_served()
    with pytest.raises(NotServed, match="no MCP server 'missing'"):
        await client_of(process, NEWEST[1], slug="missing").check_served()


async def test_a_session_that_is_refused(process: Process) -> None:
    client = client_of(process, NEWEST[0], slug="private")
    with pytest.raises(SessionRefused) as refused:
        await client.send_request("tools/list", {})
    assert "not public" in json.loads(refused.value.answer)["error"]["message"]


async def test_what_is_offered_can_be_another_catalog(process: Process) -> None:
    def overlay(catalog: Catalog) -> Catalog:
        return catalog.with_changes({"tools": {"drill_add": None}})

    client = client_of(process, NEWEST[1], overlay=overlay)
    params = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
    answer = json.loads(await client.send_request("tools/call", params))
    assert answer["error"]["message"] == "Unknown tool: drill_add"
