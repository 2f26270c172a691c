"""Rules of 2026-07-28 on requests, retries and results, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from mcp_app import Accepted, Context, Elicit, Roots, Sample
from mcp_app.catalog.registry import Registry
from mcp_app.interface.questions import ElicitAnswer, ToolOutput
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import LATEST, REVISIONS
from tests.asgi_client import PREFIX, Client, JsonObject
from tests.serving import Connect, counted

FORM: Final[JsonObject] = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
}
GIVEN: Final[JsonObject] = {"action": "accept", "content": {"word": "yes"}}

registry: Final = Registry()


def _word(answer: ElicitAnswer[dict[str, Any]]) -> str:
    assert isinstance(answer, Accepted)
    return str(answer.data["word"])


@registry.tool
async def plain() -> str:
    return "plain"


@registry.tool
async def asks(ctx: Context, line: str = "") -> str:
    return _word(await ctx.elicit(f"A word{line}?", FORM, key="word"))


@registry.tool
async def asks_in_turn(ctx: Context) -> str:
    return " ".join([_word(await ctx.elicit(f"Word {n}?", FORM)) for n in (1, 2, 3)])


@registry.tool
async def asks_everything(ctx: Context) -> str:
    answers = await ctx.ask(
        word=Elicit("A word?", FORM),
        sentence=Sample("Say something.", max_tokens=10),
        places=Roots(),
    )
    return ",".join(answers)


@registry.tool(output_schema={"type": "object", "required": ["degrees"]})
async def measures() -> ToolOutput:
    return ToolOutput((), structured={"degrees": 7.5})


@registry.prompt
async def greeting(name: str) -> str:
    return f"Hello, {name}!"


@registry.complete("greeting", "name")
async def complete_name(ctx: Context, value: str) -> list[str]:
    return [_word(await ctx.elicit(f"What follows {value}?", FORM))]


@pytest.fixture(autouse=True)
def _functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.behaviours.registry", registry)


def with_meta(**changes: object) -> JsonObject:
    return {"name": "plain", "_meta": {_key(each): changes[each] for each in changes}}


def _key(name: str) -> str:
    return name if name == "progressToken" else f"{PREFIX}{name}"


# -- `_meta` --------------------------------------------------------------------


@pytest.mark.parametrize("meta", [[], "", 5, True])
async def test_meta_of_another_type_lacks_its_fields(
    client: Client, meta: object
) -> None:
    message = client.message("tools/call", {"name": "plain"})
    message["params"]["_meta"] = meta
    found = await client.sent(message)
    assert (found.status, found.error["code"]) == (400, -32602)
    assert found.answer["id"] == message["id"]


@pytest.mark.parametrize("stated", [5, True, ["2026-07-28"], {}])
@pytest.mark.parametrize("header", ["2026-07-28", None])
async def test_a_version_that_is_no_string_is_a_malformed_meta(
    client: Client, stated: object, header: str | None
) -> None:
    found = await client.request(
        "tools/call",
        with_meta(protocolVersion=stated),
        headers={"mcp-protocol-version": header},
    )
    assert (found.status, found.error["code"]) == (400, -32602)


@pytest.mark.parametrize("level", ["loud", "INFO", "", 3, None, ["info"], True])
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_an_unknown_log_level_is_refused(
    client: Client, method: str, level: object
) -> None:
    found = await client.request(method, with_meta(logLevel=level))
    assert (found.status, found.error["code"]) == (400, -32602)
    assert "debug, info" in found.error["message"]


# -- retries --------------------------------------------------------------------

NO_STATES: Final[list[object]] = ["", "zz", "A" * 64, None, 5, [], {}]
INLINE: Final = [
    ("tools/call", {"name": "test_simple_text"}),
    ("prompts/get", {"name": "test_simple_prompt"}),
    ("resources/read", {"uri": "test://static-text"}),
]


@pytest.mark.parametrize("state", NO_STATES)
@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", {"name": "asks"}), *INLINE]
)
async def test_a_state_that_is_not_ours_is_refused_by_whatever_it_reaches(
    client: Client, method: str, params: Mapping[str, Any], state: object
) -> None:
    found = await client.request(method, {**params, "requestState": state})
    assert found.error["code"] == -32602
    assert "state" in found.error["message"]


@pytest.mark.parametrize("answers", [None, [], "", 5])
@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", {"name": "asks"}), *INLINE]
)
async def test_answers_that_are_no_object_are_refused_by_whatever_they_reach(
    client: Client, method: str, params: Mapping[str, Any], answers: object
) -> None:
    found = await client.request(method, {**params, "inputResponses": answers})
    assert found.error["code"] == -32602
    assert "inputResponses" in found.error["message"]


async def test_a_state_belongs_to_its_request_also_where_nothing_is_asked(
    client: Client,
) -> None:
    asked = await client.call("asks")
    state = asked.result["requestState"]
    for method, params in INLINE:
        found = await client.request(method, {**params, "requestState": state})
        assert found.error["code"] == -32602
    retried = {"name": "asks", "arguments": {}, "requestState": state}
    answered = {**retried, "inputResponses": {"word": GIVEN}}
    assert (await client.request("tools/call", answered)).text == "yes"


# -- what is asked --------------------------------------------------------------


async def test_everything_that_the_client_lacks_is_named_at_once(
    connect: Connect,
) -> None:
    client = await connect(LATEST.version, capabilities={"elicitation": {"url": {}}})
    found = await client.call("asks_everything")
    assert (found.status, found.error["code"]) == (400, -32021)
    assert found.error["data"]["requiredCapabilities"] == {
        "elicitation": {"form": {}},
        "sampling": {},
        "roots": {},
    }


async def test_only_what_is_missing_is_named(connect: Connect) -> None:
    client = await connect(
        LATEST.version, capabilities={"elicitation": {}, "sampling": {}}
    )
    found = await client.call("asks_everything")
    assert found.error["data"] == {"requiredCapabilities": {"roots": {}}}


async def answered(client: Client, tool: str, rounds: int) -> JsonObject:
    params: JsonObject = {"name": tool, "arguments": {}}
    for _ in range(rounds):
        result = (await client.request("tools/call", params)).result
        if result["resultType"] == "complete":
            return result
        params["requestState"] = result["requestState"]
        params["inputResponses"] = dict.fromkeys(result["inputRequests"], GIVEN)
    raise AssertionError("It asks again and again.")


async def test_questions_without_keys_are_told_apart(client: Client) -> None:
    result = await answered(client, "asks_in_turn", 5)
    assert result["structuredContent"] == {"result": "yes yes yes"}


async def test_a_completion_that_asks_is_the_fault_of_the_server(
    client: Client,
) -> None:
    found = await client.request(
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "greeting"},
            "argument": {"name": "name", "value": "a"},
        },
    )
    assert found.error["code"] == -32603


async def test_what_a_client_can_is_said_by_each_request(client: Client) -> None:
    able = client.capabilities
    for capabilities, status in ((able, 200), ({}, 400), (able, 200)):
        client.capabilities = capabilities
        assert (await client.call("asks")).status == status


async def test_a_question_is_the_end_of_its_request(
    connect: Connect, process: Process
) -> None:
    """Nothing waits for the answer, which may never come."""
    client = await connect(LATEST.version, headers={"accept": "text/event-stream"})
    found = await client.call("asks")
    assert [each["result"]["resultType"] for each in found.messages] == [
        "input_required"
    ]
    assert not process.running
    assert {name for name, rows in (await counted()).items() if rows} <= {"Counter"}


# -- results --------------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_structured_content_alone_is_said_as_text_too(
    connect: Connect, version: str
) -> None:
    found = await (await connect(version)).call("measures")
    assert found.text == '{"degrees":7.5}'


# -- refusals -------------------------------------------------------------------


@pytest.mark.parametrize("mcp", [{"LIMITS": {"streams_per_process": 1}}])
async def test_a_stream_that_is_one_too_many_is_refused_under_its_id(
    client: Client, process: Process
) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    first = client.begin("subscriptions/listen", params)
    await first.message()
    found = await client.request("subscriptions/listen", params, id="mine")
    assert (found.status, found.answer["id"]) == (503, "mine")
    assert len([*process.listeners]) == 1
    await first.leave()
