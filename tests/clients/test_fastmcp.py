"""The client of FastMCP, in both eras.

It stands on the Python SDK and adds typed results, pagination, exceptions and handlers
of its own: the SDK's tests show the rest.  It has neither `resources/subscribe` nor
`subscriptions/listen`, and in the stateless era it asks for all log messages each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from fastmcp import Client
from fastmcp.client.transports import ClientTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import ContentBlock, ElicitRequestParams, ElicitResult, TextContent

from tests.clients import facts
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.person import (
    MODEL_SAYS,
    ROOT,
    Action,
    Person,
    answer,
    eventually,
    reaction,
    wire,
)

pytestmark = pytest.mark.filterwarnings(
    # The SDK below calls the members of the older era deprecated.
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
)

SERVER = "uvicorn"

MODES = {STATEFUL: "legacy", STATELESS: "auto"}

INVALID_PARAMS = -32602

Connection: TypeAlias = Client[ClientTransport]


@pytest.fixture
def transport(endpoint: str) -> ClientTransport:
    return StreamableHttpTransport(endpoint)


@pytest.fixture
async def client(
    transport: ClientTransport, era: str, person: Person
) -> AsyncIterator[Connection]:
    async def elicit(
        _message: str,
        _form: type[Any] | None,
        question: ElicitRequestParams,
        context: object,
    ) -> ElicitResult:
        return await person.elicit(context, question)

    async def sample(*_question: object) -> str:
        return MODEL_SAYS

    connection = Client(
        transport,
        mode=MODES[era],
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=[ROOT],
        log_handler=person.log,
        message_handler=person.hear,
        progress_handler=person.progress,
    )
    async with connection:
        assert connection.protocol_version == era
        yield connection
    assert person.faults == []


stateful = pytest.mark.parametrize("era", [STATEFUL])
stateless = pytest.mark.parametrize("era", [STATELESS])


def said(content: Sequence[ContentBlock]) -> str:
    [block] = content
    assert isinstance(block, TextContent)
    return block.text


async def test_lists(client: Connection) -> None:
    tools = [tool.name for tool in await client.list_tools()]
    resources = [resource.uri for resource in await client.list_resources()]
    templates = [t.uri_template for t in await client.list_resource_templates()]
    prompts = {prompt.name for prompt in await client.list_prompts()}
    assert sum(name.startswith("plain_") for name in tools) == facts.PLAIN_TOOLS
    assert len(tools) == len(set(tools))
    assert set(facts.CONTENT) <= set(tools)
    assert {facts.STATIC_TEXT, facts.WATCHED} <= set(resources)
    assert facts.TEMPLATE in templates
    assert set(facts.PROMPTS) <= prompts


@pytest.mark.parametrize("tool", ["drill_add", "drill_add_sync"])
async def test_typed_result(client: Connection, tool: str) -> None:
    result = await client.call_tool(tool, {"a": 20, "b": 22})
    assert said(result.content) == "42"
    assert result.data.result == 42


@pytest.mark.long
async def test_any_json_comes_back(client: Connection) -> None:
    results = [
        await client.call_tool("drill_echo", {"value": value})
        for value in facts.ANY_JSON
    ]
    assert [result.structured_content for result in results] == [
        {"result": value} for value in facts.ANY_JSON
    ]


async def test_progress_in_order(client: Connection, person: Person) -> None:
    result = await client.call_tool("drill_count", {"n": 20, "delay_ms": 5})
    await eventually(lambda: len(person.progressed) == 20)
    assert said(result.content) == "done 20"
    assert person.progressed == [(i, 20) for i in range(1, 21)]


@pytest.mark.long
@stateful
async def test_log_level_of_a_session(client: Connection, person: Person) -> None:
    await client.set_logging_level("warning")
    await client.call_tool("drill_log", {"level": "info", "text": "too low"})
    await client.call_tool("drill_log", {"level": "error", "text": "heard"})
    await eventually(lambda: len(person.logged) == 1)
    assert person.logged == [("error", "heard")]


@pytest.mark.long
@stateless
async def test_log_messages_of_a_request(client: Connection, person: Person) -> None:
    await client.call_tool("test_tool_with_logging")
    await eventually(lambda: len(person.logged) == 3)
    assert person.logged == [
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ]


@pytest.mark.long
@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync"])
async def test_elicitation(client: Connection, person: Person, tool: str) -> None:
    person.answers = [answer(answer="blue")]
    result = await client.call_tool(tool, {"question": "Which colour?"})
    assert said(result.content) == "blue"
    assert [question.message for question in person.asked] == ["Which colour?"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "outcome"), [("decline", "declined"), ("cancel", "cancelled")]
)
async def test_elicitation_without_an_answer(
    client: Connection, person: Person, action: Action, outcome: str
) -> None:
    person.answers = [reaction(action)]
    with pytest.raises(ToolError, match=rf"^The question was {outcome}\.$"):
        await client.call_tool("drill_ask", {"question": "Which colour?"})


@pytest.mark.long
@pytest.mark.parametrize("tool", ["drill_ask_url", "drill_ask_url_sync"])
@pytest.mark.parametrize(
    ("action", "outcome"),
    [("accept", "accepted"), ("decline", "declined"), ("cancel", "cancelled")],
)
async def test_elicitation_by_url(
    client: Connection, person: Person, tool: str, action: Action, outcome: str
) -> None:
    person.answers = [reaction(action)]
    result = await client.call_tool(tool)
    assert said(result.content) == outcome
    [asked] = person.asked
    assert wire(asked).items() >= facts.SIGN_IN.items()


@pytest.mark.long
@stateful
async def test_visits_of_a_session_end(client: Connection, person: Person) -> None:
    person.answers = [reaction("accept")]
    await client.call_tool("drill_ask_url")
    await eventually(lambda: len(person.completed()) == 1)
    [asked] = person.asked
    assert wire(asked)["elicitationId"] == person.completed()[0]


async def test_two_questions(client: Connection, person: Person, era: str) -> None:
    # It is the key of a ledger that others may share, who ask the same.
    question = f"Asked twice by FastMCP in {era}, {uuid4().hex}?"
    person.answers = [answer(answer="yes"), answer(answer="again")]
    result = await client.call_tool("drill_ask_twice", {"question": question})
    assert said(result.content) == "yes again"
    lines = await client.call_tool("drill_ledger", {"key": question, "seconds": 0})
    assert lines.structured_content == {"result": 2}


@pytest.mark.long
async def test_several_questions_at_once(client: Connection, person: Person) -> None:
    person.answers = [answer(name="Alice")]
    result = await client.call_tool("test_input_required_result_multiple_inputs")
    assert said(result.content) == f"{MODEL_SAYS} Alice, with 1 roots"


@pytest.mark.long
@stateful
async def test_session_hears_of_changed_lists(
    client: Connection, person: Person
) -> None:
    await client.call_tool("test_trigger_tool_change")
    await eventually(lambda: person.heard("notifications/tools/list_changed"))


async def test_errors(client: Connection) -> None:
    with pytest.raises(MCPError) as unknown:
        await client.call_tool("no_such_tool")
    assert unknown.value.code == INVALID_PARAMS
    with pytest.raises(ToolError, match="b"):
        await client.call_tool("drill_add", {"a": 1})
    with pytest.raises(ToolError, match=facts.FAILURE):
        await client.call_tool("test_error_handling")
    with pytest.raises(ToolError) as raised:
        await client.call_tool("drill_fail", {"kind": "exception"})
    assert "ordered by the caller" not in str(raised.value)


async def test_timed_out_call(client: Connection) -> None:
    with pytest.raises(MCPError):
        await client.call_tool("drill_sleep", {"seconds": 30}, timeout=0.2)
    result = await client.call_tool("drill_add", {"a": 1, "b": 1})
    assert said(result.content) == "2"


@pytest.mark.long
async def test_calls_side_by_side(client: Connection) -> None:
    found = await asyncio.gather(
        *(client.call_tool("drill_add_sync", {"a": i, "b": i}) for i in range(20))
    )
    assert [said(result.content) for result in found] == [str(2 * i) for i in range(20)]
