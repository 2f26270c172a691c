"""tools/call: arguments, results and failures, in each revision."""

from __future__ import annotations

import base64
import json
import logging
import re
from typing import Any, Final

import pytest
from django.core.signals import got_request_exception

from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import PREFIX, Client, JsonObject, Outcome
from tests.behaviours import BLOCKS, BYTES, SECRET, VALUES, Stage
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST
from tests.serving import Connect, counted

NEWEST: Final = "2026-07-28"
ERAS: Final = ("2025-11-25", NEWEST)
PREFIX_OF_META: Final = f"{PREFIX}serverInfo"


def failed(found: Outcome) -> str:
    assert (found.status, found.result["isError"]) == (200, True)
    assert "structuredContent" not in found.result
    return found.text


def violations(found: Outcome) -> set[tuple[str, str]]:
    """The paths and rules of an answer to wrong arguments, as its revision has it."""
    if "error" in found.answer:
        assert (found.status, found.error["code"]) == (200, -32602)
        told = found.error["data"]["violations"]
        assert all(each["message"] in found.error["message"] for each in told)
        return {(each["path"], each["rule"]) for each in told}
    return set(re.findall(r"^- (\S+) \((\w+)\): .", failed(found), re.MULTILINE))


# -- what is called -------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_call(client: Client, version: str) -> None:
    found = await client.call("drill_add", a=20, b=22)
    expected: JsonObject = {"content": [{"type": "text", "text": "42"}]}
    if client.revision.structured_content:
        expected["structuredContent"] = {"result": 42}
    if client.revision.result_type:
        expected["resultType"] = "complete"
        info = {"name": "django-mcp-app", "title": "Drill", "version": "0.1.0"}
        expected["_meta"] = {PREFIX_OF_META: info}
    assert found.result == expected


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_rate": 2, "tool_burst": 2}}])
@pytest.mark.parametrize("version", REVISIONS)
async def test_calls_beyond_the_rate_are_refused(
    connect: Connect, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    done = [(await client.call("open_to_all")).result for _ in range(2)]
    assert not any(each.get("isError") for each in done)
    said = failed(await client.call("open_to_all"))
    assert "one person may call it 2 times a minute" in said
    other = await connect(version, path="/mcp/private", headers={"x-user": "b"})
    assert not (await other.call("open_to_all")).result.get("isError")


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_unknown_and_hidden_tools_are_the_same(
    connect: Connect, stage: Stage, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for name in ("secret", "no_way"):
        found = await client.request("tools/call", {"name": name}, id=7)
        assert (found.status, found.error["code"]) == (200, -32602)
        answers.append(found.raw.replace(name.encode(), b"NAME"))
    assert answers[0] == answers[1]
    assert stage.told == []
    allowed = {"x-user": "a", "x-permissions": f"shop.other {SECRET}"}
    client = await connect(version, path="/mcp/private", headers=allowed)
    assert (await client.call("secret")).text == "for few"


WRONG_PARAMS: Final[list[tuple[Any, str]]] = [
    *(({}, "name"), ({"name": 7}, "name"), ({"name": None}, "name")),
    ({"name": ["drill_add"]}, "name"),
    ({"name": "drill_add", "arguments": []}, "arguments"),
    ({"name": "drill_add", "arguments": "{}"}, "arguments"),
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_wrong_params(client: Client) -> None:
    for params, member in WRONG_PARAMS:
        found = await client.request("tools/call", params)
        assert (found.status, found.error["code"]) == (200, -32602)
        assert member in found.error["message"]


@pytest.mark.parametrize("name", ["", "drill_add ", "DRILL_ADD", "drill_add\0", "💥"])
@pytest.mark.parametrize("version", ERAS)
async def test_unknown_tools(client: Client, name: str) -> None:
    encoded = base64.b64encode(name.encode()).decode()
    headers = {"mcp-name": f"=?base64?{encoded}?="}
    found = await client.request("tools/call", {"name": name}, headers=headers)
    assert found.error == {"code": -32602, "message": f"Unknown tool: {name}"}


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_call_that_only_the_scope_hides(connect: Connect, version: str) -> None:
    """Whoever lacks the right, too, learns of no tool."""
    reads = {"x-user": "ana", "x-may": "read", "x-permissions": ""}
    client = await connect(version, path="/mcp/private", headers=reads)
    found = await client.request("tools/call", {"name": "open_to_all"})
    assert (found.status, found.error["code"]) == (403, -32600)
    assert "open_to_all can change something" in found.error["message"]
    assert found.headers["www-authenticate"] == (
        'Bearer realm="mcp", error="insufficient_scope", scope="mcp:read mcp:change"'
    )
    for name, other in (
        ("secret", {}),
        ("nowhere", {}),
        ("open_to_all", {"x-tags": "shown"}),
    ):
        found = await client.request("tools/call", {"name": name}, headers=other)
        assert (found.status, found.error["code"]) == (200, -32602)
    found = await client.request(
        "tools/call", {"name": "secret"}, headers={"x-permissions": SECRET}
    )
    assert found.status == 403
    if client.revision.batches:
        one = client.message("tools/call", {"name": "open_to_all"})
        [answer] = (await client.sent([one])).messages
        assert "open_to_all can change something" in answer["error"]["message"]


# -- arguments ------------------------------------------------------------------

WRONG_ARGUMENTS: Final[list[tuple[str, JsonObject, set[tuple[str, str]]]]] = [
    ("drill_add", {}, {("$", "required")}),
    ("drill_add", {"a": 1, "b": "two"}, {("$.b", "type")}),
    ("drill_add", {"a": 1.5, "b": None}, {("$.a", "type"), ("$.b", "type")}),
    ("drill_add", {"a": True, "b": 1}, {("$.a", "type")}),
    ("typed", {"count": 1, "extra": 1}, {("$", "additionalProperties")}),
    (
        "typed",
        {
            "count": "many",
            "ratio": "half",
            "on": "perhaps",
            "names": ["a", 7],
            "options": {"a": 1, "b": "x"},
            "kind": "c",
            "text": 1,
        },
        {
            ("$.count", "type"),
            ("$.ratio", "type"),
            ("$.on", "type"),
            ("$.names[1]", "type"),
            ("$.options.b", "type"),
            ("$.kind", "enum"),
            ("$.text", "type"),
        },
    ),
    ("loose", {"nothing": 1}, {("$.nothing", "false")}),
    ("json_schema_2020_12_tool", {"contactMethod": "mail"}, set()),
]


@pytest.mark.parametrize("version", REVISIONS)
async def test_wrong_arguments(client: Client) -> None:
    for tool, arguments, told in WRONG_ARGUMENTS:
        found = await client.call(tool, **arguments)
        named = violations(found)
        assert client.revision.argument_errors_as_results == (
            "error" not in found.answer
        )
        assert named
        for path, rule in told:
            assert any(each[0] == path for each in named), (tool, path, rule, named)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_arguments_arrive(client: Client) -> None:
    arguments = {
        "count": 2**60,
        "ratio": 1,
        "on": True,
        "names": ["a", "\0", "💥"],
        "options": {"a": 1},
        "kind": "b",
        "text": "7",
    }
    found = await client.call("typed", **arguments)
    assert json.loads(found.text) == {**arguments, "ratio": 1.0}


COERCED: Final[list[tuple[JsonObject, JsonObject]]] = [
    ({"count": "7"}, {"count": 7}),
    ({"count": "7", "ratio": "0.25", "on": "true"}, {"ratio": 0.25, "on": True}),
    ({"count": 1, "names": '["a","b"]'}, {"names": ["a", "b"]}),
    ({"count": 1, "options": '{"a": 1}'}, {"options": {"a": 1}}),
    ({"count": 1, "options": "null"}, {"options": None}),
    ({"count": "1", "text": "7"}, {"text": "7"}),
]
NOT_COERCED: Final[list[JsonObject]] = [
    *({"count": "seven"}, {"count": "7.5"}, {"count": "NaN"}, {"count": "true"}),
    *({"count": "[7]"}, {"count": ""}, {"count": "7", "names": "a,b"}),
    *({"count": "7", "extra": "1"}, {"count": "1e999"}, {"count": ["7"]}),
]


@pytest.mark.parametrize("version", ERAS)
async def test_strings_are_read_once(client: Client) -> None:
    for arguments, read in COERCED:
        found = await client.call("typed", **arguments)
        structured = found.result["structuredContent"]
        assert {name: structured[name] for name in read} == read
    for arguments in NOT_COERCED:
        assert violations(await client.call("typed", **arguments))


async def test_models_are_read_from_strings(client: Client) -> None:
    """Pydantic puts a model behind `$ref`."""
    lines = [{"sku": "7", "count": "2"}]
    for order in ({"lines": lines}, json.dumps({"lines": json.dumps(lines)})):
        found = await client.call("ordered", order=order)
        assert found.result["structuredContent"] == {"skus": ["7"], "count": 2}


@pytest.mark.parametrize("mcp", [{"COERCE": False}])
async def test_reading_can_be_switched_off(client: Client) -> None:
    assert violations(await client.call("typed", count="7")) == {("$.count", "type")}


async def test_a_sum_that_has_too_many_digits(client: Client) -> None:
    found = await client.call("drill_add", a=int("9" * 4300), b=2)
    assert found.result["isError"] is True
    assert "too many digits" in found.text
    large = await client.call("drill_add", a=10**30, b=2)
    assert large.result["structuredContent"] == {"result": 10**30 + 2}


async def test_arguments_that_pass_the_schema_alone(connect: Connect) -> None:
    """The function's own types are read after the schema; both name violations."""
    client = await connect("2025-11-25")
    assert violations(await client.call("dated", day="2026-02-30"))
    assert (await client.call("dated", day="2026-02-03")).text == "2026-02-03"
    older = await connect("2025-06-18")
    assert violations(await older.call("dated", day="2026-02-30"))


# -- content --------------------------------------------------------------------

ENCODED: Final = base64.b64encode(BYTES).decode()


@pytest.mark.parametrize("version", REVISIONS)
async def test_every_block(client: Client, version: str) -> None:
    content = (await client.call("blocks")).result["content"]
    assert len(content) == len(BLOCKS)
    plain, noted, image, audio, link, bare, text, blob = content
    known = client.revision.content
    assert plain == {"type": "text", "text": "plain"}
    assert noted["annotations"]["priority"] == 0.5
    assert ("lastModified" in noted["annotations"]) == (version >= "2025-06-18")
    assert ("_meta" in noted) == (version >= "2025-06-18")
    assert image == {"type": "image", "data": ENCODED, "mimeType": "image/png"}
    assert audio["type"] == ("audio" if "audio" in known else "text")
    if "audio" not in known:
        assert audio["text"] == f"data:audio/wav;base64,{ENCODED}"
        assert audio["annotations"]["audience"] == ["user"]
    if "resource_link" in known:
        assert link["title"] == "A memo"
        assert ("icons" in link) == (version >= "2025-11-25")
        assert bare == {"type": "resource_link", "uri": "memo://bare", "name": "bare"}
    else:
        assert link["text"] == "A memo <memo://fixed>: It is fixed."
        assert bare["text"] == "bare <memo://bare>"
    assert (text["resource"]["uri"], text["resource"]["text"]) == (
        "memo://text",
        "said",
    )
    assert blob["resource"]["blob"] == ENCODED
    assert ("_meta" in blob["resource"]) == (version >= "2025-06-18")


@pytest.mark.parametrize("version", REVISIONS)
async def test_structured_content(client: Client) -> None:
    found = await client.call("weather", place="there")
    weather = {"degrees": 7.5, "words": "mild there"}
    assert json.loads(found.text) == weather
    told = found.result.get("structuredContent")
    assert told == (weather if client.revision.structured_content else None)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_meta_of_a_result(client: Client) -> None:
    meta = (await client.call("marked")).result["_meta"]
    assert meta["example.org/d"] == 4
    assert (PREFIX_OF_META in meta) == client.revision.stateless


RETURNED: Final[list[tuple[str, str]]] = [
    *(("none", "null"), ("nul", "ab"), ("terminal", "red alert\nand\tmore")),
    ("huge integer", str(2**70)),
]


@pytest.mark.parametrize("tool", ["returns", "returns_sync"])
@pytest.mark.parametrize("version", ERAS)
async def test_odd_values(client: Client, tool: str) -> None:
    for which, text in RETURNED:
        found = await client.call(tool, which=which)
        assert found.text == text
        assert found.result["structuredContent"] == {"result": VALUES[which]}


@pytest.mark.parametrize("tool", ["returns", "returns_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_is_not_json(client: Client, tool: str) -> None:
    told = failed(await client.call(tool, which="nan"))
    assert ".deep[1]" in told
    assert "nan" in told
    assert "inf" in failed(await client.call(tool, which="infinity"))
    assert "surrogate" in failed(await client.call(tool, which="surrogate"))
    assert tool in failed(await client.call(tool, which="object"))


@pytest.mark.parametrize("kind", ["other", "none"])
@pytest.mark.parametrize("version", ERAS)
async def test_a_broken_output_schema(client: Client, kind: str) -> None:
    told = failed(await client.call("broken_promise", kind=kind))
    assert "broken_promise" in told
    assert "output schema" in told


async def test_an_error_promises_nothing(stateful: Client) -> None:
    assert failed(await stateful.call("broken_promise", kind="error")) == "It failed."


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_result": 1000}}])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_t22_the_largest_result(client: Client) -> None:
    assert len((await client.call("large", size=200)).text) == 200
    told = failed(await client.call("large", size=1001))
    assert re.search(r"has \d,\d{3} bytes, .* allows 1,000", told)


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_result": 60}}])
async def test_whatever_the_limit_a_model_reads_what_to_mend(client: Client) -> None:
    assert "$.count (type)" in failed(await client.call("typed", count="x"))


# -- failures -------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["fails", "fails_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_tool_error_is_for_the_model(client: Client, tool: str) -> None:
    assert failed(await client.call(tool, kind="tool error")) == "Read this."
    found = await client.call(tool, kind="content")
    assert [each["type"] for each in found.result["content"]] == ["text", "image"]
    assert found.result["isError"] is True


KINDS: Final = ("exception", "exit", "cancelled", "stop")


@pytest.mark.parametrize("tool", ["fails", "fails_sync"])
@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_that_fails(
    connect: Connect, caplog: pytest.LogCaptureFixture, version: str, tool: str
) -> None:
    """The client gets an id, the log the traceback under it, and the site a signal."""
    signals: list[object] = []

    def receive(**named: object) -> None:
        signals.append(named["signal"])

    got_request_exception.connect(receive)
    client = await connect(version)
    for kind in KINDS:
        caplog.clear()
        told = failed(await client.call(tool, kind=kind))
        assert "secret" not in told
        identifier = told.rstrip(".").rpartition(" ")[2]
        records = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert [getattr(each, "failure", "") for each in records] == [identifier]
        assert records[0].exc_info is not None
    got_request_exception.disconnect(receive)
    assert len(signals) == len(KINDS)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_the_client_cannot(client: Client) -> None:
    found = await client.call("fails", kind="cannot")
    if client.revision.stateless:
        assert (found.status, found.error["code"]) == (400, -32021)
        required: JsonObject = {"extensions": {"kettle": {}}}
        assert found.error["data"] == {"requiredCapabilities": required}
    else:
        assert failed(found) == "A kettle is needed."


async def test_a_tool_that_prints(stateful: Client) -> None:
    assert (await stateful.call("prints")).text == "printed"


@pytest.mark.parametrize("tool", ["hangs", "hangs_sync"])
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_tool_that_hangs(client: Client, stage: Stage, tool: str) -> None:
    told = failed(await client.call(tool))
    assert told == f"{tool} did not finish within 0.03 seconds."
    stage.released_thread.set()
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_timeout": 0.02}}])
async def test_the_time_of_the_site(client: Client) -> None:
    assert "0.02 seconds" in failed(await client.call("waits"))


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_that_answers_when_its_time_is_over(
    client: Client, stage: Stage
) -> None:
    assert (await client.call("survives")).text == "survived"
    assert stage.told == ["survived"]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_a_tool_leaves_nothing_behind(client: Client, process: Process) -> None:
    """But what keeps it from running twice."""
    before = await counted()
    tools = ("fails", "returns", "hangs", "typed", "nothing")
    for tool in tools:
        await client.call(tool, kind="exception", which="nan")
    there = process.catalogs.serving("default").tools
    known = [there[tool] for tool in tools if tool in there]
    once = sum(not each.definition.hints.repeatable for each in known)
    assert await counted() == {**before, "Stream": once, "Event": once}


async def test_a_text_tool(connect: Connect) -> None:
    """Rows of the kind `text` run nothing: they are filled in where they are."""
    client: Client = await connect(NEWEST)
    found = await client.call("test_multiple_content_types")
    assert [each["type"] for each in found.result["content"]] == [
        "text",
        "image",
        "resource",
    ]
