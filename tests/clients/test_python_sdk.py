"""The client of the official Python SDK (`mcp`), in both eras.

It has no pagination of its own, and no `resources/subscribe`, `ping` or
`logging/setLevel` in the stateless era, where the protocol has none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias, TypeVar, cast
from uuid import uuid4

import pytest
from anyio import ClosedResourceError
from mcp import Client, MCPError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourceUpdated,
    Subscription,
    ToolsListChanged,
)
from mcp_types import (
    LOG_LEVEL_META_KEY,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    LoggingLevel,
    PromptReference,
    RequestParamsMeta,
    TextContent,
)

from tests.clients import facts
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.person import (
    MODEL_SAYS,
    PATIENCE_S,
    ROOT,
    Action,
    Person,
    answer,
    eventually,
    reaction,
    wire,
)

pytestmark = pytest.mark.filterwarnings(
    # The SDK calls the members of the older era deprecated.
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
)

# "auto" asks server/discover first; a server that answers it is of the stateless era.
MODES = {STATEFUL: "legacy", STATELESS: "auto"}

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601


class Page(Protocol):
    next_cursor: str | None


PageOfItems = TypeVar("PageOfItems", bound=Page)

Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def connect(endpoint: str, era: str, person: Person) -> Connect:
    @asynccontextmanager
    async def connected(
        *, log_level: LoggingLevel | None = None
    ) -> AsyncIterator[Client]:
        client = Client(
            endpoint,
            mode=MODES[era],
            log_level=log_level,
            elicitation_callback=person.elicit,
            sampling_callback=person.sample,
            list_roots_callback=person.list_roots,
            logging_callback=person.log,
            message_handler=person.hear,
            # Where nothing is answered, it waits for ever.
            read_timeout_seconds=120,
        )
        async with client:
            assert client.protocol_version == era
            yield client
        assert person.faults == []

    return connected


stateful = pytest.mark.parametrize("era", [STATEFUL])
stateless = pytest.mark.parametrize("era", [STATELESS])


def said(result: CallToolResult) -> str:
    assert not result.is_error, result.content
    return spoken(result)


def spoken(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def pages(
    fetch: Callable[[str | None], Awaitable[PageOfItems]],
) -> list[PageOfItems]:
    found = [await fetch(None)]
    while (cursor := found[-1].next_cursor) is not None:
        found.append(await fetch(cursor))
    return found


async def test_negotiation(connect: Connect) -> None:
    async with connect() as client:
        capabilities = wire(client.server_capabilities)
        server = client.server_info
    assert server is not None
    assert server.name
    assert server.version
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["prompts"] == {"listChanged": True}
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert capabilities["logging"] == {}
    assert capabilities["completions"] == {}


async def test_pinned_version_needs_no_discovery(endpoint: str) -> None:
    async with Client(endpoint, mode=STATELESS) as client:
        result = await client.call_tool("drill_add", {"a": 2, "b": 3})
    assert said(result) == "5"


async def test_lists_every_page_of_tools(connect: Connect) -> None:
    async with connect() as client:
        found = await pages(lambda cursor: client.list_tools(cursor=cursor))
    names = [tool.name for page in found for tool in page.tools]
    assert len(found) > 1
    assert names[0] == "test_simple_text"
    assert len(names) == len(set(names))
    assert set(facts.CONTENT) <= set(names)
    assert sum(name.startswith("plain_") for name in names) == facts.PLAIN_TOOLS


async def test_lists_resources_templates_and_prompts(connect: Connect) -> None:
    async with connect() as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        prompts = await client.list_prompts()
    assert resources.resources[0].uri == facts.STATIC_TEXT
    listed = {resource.uri for resource in resources.resources}
    assert {facts.STATIC_TEXT, "test://static-binary", facts.WATCHED} <= listed
    assert facts.TEMPLATE in [t.uri_template for t in templates.resource_templates]
    assert set(facts.PROMPTS) <= {prompt.name for prompt in prompts.prompts}
    assert all(prompt.description for prompt in prompts.prompts)


async def test_foreign_cursor_is_refused(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as refused:
            await client.list_tools(cursor="no-cursor-of-ours")
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize(("tool", "content"), facts.CONTENT.items())
async def test_content_blocks(
    connect: Connect, tool: str, content: list[dict[str, Any]]
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool)
    assert not result.is_error
    assert [wire(block) for block in result.content] == content


@pytest.mark.parametrize("tool", ["drill_add", "drill_add_sync"])
async def test_structured_result(connect: Connect, tool: str) -> None:
    async with connect() as client:
        # The SDK checks structured content against the schema that it has listed.
        await client.list_tools()
        result = await client.call_tool(tool, {"a": 20, "b": 22})
    assert said(result) == "42"
    assert result.structured_content == {"result": 42}


async def test_any_json_comes_back(connect: Connect) -> None:
    async with connect() as client:
        results = [
            await client.call_tool("drill_echo", {"value": value})
            for value in facts.ANY_JSON
        ]
    assert [r.structured_content for r in results] == [
        {"result": value} for value in facts.ANY_JSON
    ]


async def test_t28_a_text_steers_no_terminal(connect: Connect) -> None:
    raw = "\x1b[31mred\x1b[0m \x1b]0;title\x07alert\0\U000e0041\nand\tmore"
    async with connect() as client:
        text = await client.call_tool("drill_echo", {"value": raw})
        whole = await client.call_tool("drill_echo", {"value": {"\x7f": raw}})
    assert said(text) == "red alert\nand\tmore"
    assert text.structured_content == {"result": raw}
    assert json.loads(said(whole)) == {"\x7f": raw}


@stateless
async def test_t17_a_log_message_has_no_credentials(
    connect: Connect, person: Person
) -> None:
    async with connect(log_level="info") as client:
        arguments = {"level": "info", "text": "Bearer canary"}
        await client.call_tool("drill_log", arguments)
        await eventually(lambda: bool(person.logged))
    assert person.logged == [("info", "•••")]


async def test_whoami(connect: Connect, era: str) -> None:
    async with connect() as client:
        result = await client.call_tool("drill_whoami")
    caller = result.structured_content
    assert isinstance(caller, dict)
    assert caller["revision"] == era
    assert caller["session"] is (era == STATEFUL)
    assert caller["client"] == "mcp"


async def test_progress_in_order(connect: Connect, person: Person) -> None:
    async with connect() as client:
        result = await client.call_tool(
            "drill_count", {"n": 20, "delay_ms": 5}, progress_callback=person.progress
        )
        await eventually(lambda: len(person.progressed) == 20)
    assert said(result) == "done 20"
    assert person.progressed == [(i, 20) for i in range(1, 21)]


async def test_a_client_that_is_sent_away_comes_back(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("test_reconnection", {})
    assert said(result) == facts.RECONNECTED


@stateful
async def test_large_messages_in_order(connect: Connect, person: Person) -> None:
    counting = {"n": 50, "delay_ms": 0, "payload_bytes": 20_000}
    async with connect() as client:
        await client.set_logging_level("info")
        result = await client.call_tool("drill_count", counting)
        await eventually(lambda: len(person.logged) == 50)
    assert said(result) == "done 50"
    pad = "x" * 20_000
    assert person.logged == [("info", {"i": i, "pad": pad}) for i in range(1, 51)]


async def test_large_result(connect: Connect) -> None:
    value = "Ünïcödé " * 20_000
    async with connect() as client:
        result = await client.call_tool("drill_echo", {"value": value})
    assert result.structured_content == {"result": value}


@stateful
async def test_log_level_of_a_session(connect: Connect, person: Person) -> None:
    async with connect() as client:
        await client.set_logging_level("warning")
        await client.call_tool("drill_log", {"level": "info", "text": "too low"})
        await client.call_tool("drill_log", {"level": "error", "text": "heard"})
        await client.set_logging_level("debug")
        await client.call_tool("test_tool_with_logging")
        await eventually(lambda: len(person.logged) == 4)
    assert person.logged == [
        ("error", "heard"),
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ]


@stateless
async def test_log_level_of_a_request(connect: Connect, person: Person) -> None:
    async with connect(log_level="warning") as client:
        await client.call_tool("drill_log", {"level": "info", "text": "too low"})
        await client.call_tool("drill_log", {"level": "error", "text": "heard"})
        await client.call_tool(
            "drill_log",
            {"level": "debug", "text": "asked for"},
            meta=cast("RequestParamsMeta", {LOG_LEVEL_META_KEY: "debug"}),
        )
        await eventually(lambda: len(person.logged) == 2)
    assert person.logged == [("error", "heard"), ("debug", "asked for")]


@stateless
async def test_no_log_level_means_no_log(connect: Connect, person: Person) -> None:
    async with connect() as client:
        result = await client.call_tool("test_logging_tool")
    assert not result.is_error
    assert person.logged == []


@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync", "drill_ask_database"])
async def test_elicitation(connect: Connect, person: Person, tool: str) -> None:
    person.answers = [answer(answer="blue")]
    async with connect() as client:
        result = await client.call_tool(tool, {"question": "Which colour?"})
    assert said(result) == "blue"
    [asked] = person.asked
    assert isinstance(asked, ElicitRequestFormParams)
    assert asked.message == "Which colour?"
    assert asked.requested_schema["properties"]["answer"]["type"] == "string"


@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync"])
async def test_questions_side_by_side(
    connect: Connect, person: Person, tool: str
) -> None:
    questions = [f"Question {i}?" for i in range(5)]
    person.answers = [answer(answer="yes") for _ in questions]
    async with connect() as client:
        results = await asyncio.gather(
            *(client.call_tool(tool, {"question": question}) for question in questions)
        )
    assert [said(result) for result in results] == ["yes"] * 5
    assert sorted(asked.message for asked in person.asked) == questions


@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync"])
@pytest.mark.parametrize(
    ("action", "outcome"), [("decline", "declined"), ("cancel", "cancelled")]
)
async def test_elicitation_without_an_answer(
    connect: Connect, person: Person, tool: str, action: Action, outcome: str
) -> None:
    person.answers = [reaction(action)]
    async with connect() as client:
        result = await client.call_tool(tool, {"question": "Which colour?"})
    assert result.is_error
    assert spoken(result) == f"The question was {outcome}."


@pytest.mark.parametrize("tool", ["drill_ask_url", "drill_ask_url_sync"])
@pytest.mark.parametrize(
    ("action", "outcome"),
    [("accept", "accepted"), ("decline", "declined"), ("cancel", "cancelled")],
)
async def test_elicitation_by_url(
    connect: Connect, person: Person, tool: str, action: Action, outcome: str
) -> None:
    person.answers = [reaction(action)]
    async with connect() as client:
        result = await client.call_tool(tool)
    assert said(result) == outcome
    [asked] = person.asked
    assert isinstance(asked, ElicitRequestURLParams)
    assert wire(asked).items() >= facts.SIGN_IN.items()


@stateful
async def test_visits_of_a_session_have_ids_and_an_end(
    connect: Connect, person: Person
) -> None:
    person.answers = [reaction("decline"), reaction("accept"), reaction("accept")]
    async with connect() as client:
        for _ in range(3):
            await client.call_tool("drill_ask_url")
        await eventually(lambda: len(person.completed()) == 2)
    ids = [getattr(asked, "elicitation_id", None) for asked in person.asked]
    assert all(ids)
    assert len(set(ids)) == 3
    # Nobody went where the answer was no.
    assert person.completed() == ids[1:]


@stateless
async def test_visits_of_a_request_have_no_ids(
    connect: Connect, person: Person
) -> None:
    person.answers = [reaction("accept")]
    async with connect() as client:
        await client.call_tool("drill_ask_url")
    assert [wire(asked).get("elicitationId") for asked in person.asked] == [None]
    assert person.completed() == []


async def test_question_in_a_transaction_is_refused(
    connect: Connect, person: Person
) -> None:
    async with connect() as client:
        result = await client.call_tool("drill_ask_atomic", {"question": "Never?"})
    assert result.is_error
    assert person.asked == []


async def test_two_questions_and_one_ledger_line(
    connect: Connect, person: Person, era: str
) -> None:
    # It is the key of a ledger that others may share, who ask the same.
    question = f"Asked twice by the Python SDK in {era}, {uuid4().hex}?"
    person.answers = [answer(answer="yes"), answer(answer="again")]
    async with connect() as client:
        result = await client.call_tool("drill_ask_twice", {"question": question})
        lines = await client.call_tool("drill_ledger", {"key": question, "seconds": 0})
    assert said(result) == "yes again"
    assert [asked.message for asked in person.asked] == [
        question,
        f"{question} (again)",
    ]
    # One line of the first call, whatever ran again, and one of the call that counts.
    assert lines.structured_content == {"result": 2}


async def test_conformance_elicitations(connect: Connect, person: Person) -> None:
    person.answers = [
        answer(username="testuser", email="test@example.com"),
        ElicitResult(
            action="accept",
            content={
                "untitledSingle": "option1",
                "titledSingle": "value1",
                "legacyEnum": "opt1",
                "untitledMulti": ["option1", "option2"],
                "titledMulti": ["value1", "value2"],
            },
        ),
    ]
    async with connect() as client:
        user = await client.call_tool("test_elicitation", {"message": "Who?"})
        choices = await client.call_tool("test_elicitation_sep1330_enums")
    assert json.loads(said(user).partition("content=")[2]) == {
        "username": "testuser",
        "email": "test@example.com",
    }
    assert "value2" in said(choices)


async def test_sampling(connect: Connect, person: Person) -> None:
    async with connect() as client:
        result = await client.call_tool("test_sampling", {"prompt": "Say something"})
    assert said(result) == f"LLM response: {MODEL_SAYS}"
    [question] = person.sampled
    assert question.max_tokens == 100
    assert wire(question.messages[0]) == {
        "role": "user",
        "content": facts.text("Say something"),
    }


async def test_roots(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("test_input_required_result_list_roots")
    assert ROOT in said(result)


async def test_several_questions_at_once(connect: Connect, person: Person) -> None:
    person.answers = [answer(name="Alice")]
    async with connect() as client:
        result = await client.call_tool("test_input_required_result_multiple_inputs")
    assert said(result) == f"{MODEL_SAYS} Alice, with 1 roots"


async def test_rounds_of_questions(connect: Connect, person: Person) -> None:
    person.answers = [answer(name="Alice"), answer(color="blue")]
    async with connect() as client:
        result = await client.call_tool("test_input_required_result_multi_round")
    assert said(result) == "Alice likes blue."


async def test_prompt_that_asks(connect: Connect, person: Person) -> None:
    person.answers = [answer(context="test context")]
    async with connect() as client:
        result = await client.get_prompt("test_input_required_result_prompt")
    [message] = result.messages
    assert isinstance(message.content, TextContent)
    assert "test context" in message.content.text


async def test_client_that_cannot_be_asked(endpoint: str, era: str) -> None:
    async with Client(endpoint, mode=MODES[era]) as client:
        outcome = await _outcome(client, "drill_ask", {"question": "Anyone there?"})
    assert outcome == {STATEFUL: "error result", STATELESS: -32021}[era]


async def test_client_that_cannot_be_sent_to_a_page(endpoint: str, era: str) -> None:
    async with Client(endpoint, mode=MODES[era]) as client:
        outcome = await _outcome(client, "drill_ask_url", {})
    assert outcome == {STATEFUL: "error result", STATELESS: -32021}[era]


async def _outcome(client: Client, tool: str, arguments: dict[str, Any]) -> str | int:
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return error.code
    return "error result" if result.is_error else spoken(result)


@pytest.mark.parametrize(("uri", "contents"), facts.RESOURCES.items())
async def test_reads_resources(
    connect: Connect, uri: str, contents: dict[str, Any]
) -> None:
    async with connect() as client:
        result = await client.read_resource(uri)
    assert [wire(content) for content in result.contents] == [contents]


@pytest.mark.parametrize(("prompt", "expected"), facts.PROMPTS.items())
async def test_gets_prompts(
    connect: Connect, prompt: str, expected: tuple[dict[str, str], list[dict[str, Any]]]
) -> None:
    arguments, content = expected
    async with connect() as client:
        result = await client.get_prompt(prompt, arguments or None)
    assert {message.role for message in result.messages} == {"user"}
    assert [wire(message.content) for message in result.messages] == content


async def test_completion(connect: Connect) -> None:
    reference = PromptReference(name="test_prompt_with_arguments")
    async with connect() as client:
        result = await client.complete(reference, {"name": "arg1", "value": "test"})
    assert result.completion.values == ["test", "testValue1", "testValue2"]


@stateful
async def test_subscription_of_a_session(connect: Connect, person: Person) -> None:
    updated = "notifications/resources/updated"
    async with connect() as client:
        await client.subscribe_resource(facts.WATCHED)
        await client.subscribe_resource(facts.STATIC_TEXT)
        await client.call_tool("drill_touch", {"uri": facts.WATCHED})
        await eventually(lambda: person.heard(updated, facts.WATCHED))
        await client.unsubscribe_resource(facts.WATCHED)
        person.notified.clear()
        await client.call_tool("drill_touch", {"uri": facts.WATCHED})
        await client.call_tool("drill_touch", {"uri": facts.STATIC_TEXT})
        await eventually(lambda: person.heard(updated, facts.STATIC_TEXT))
        assert not person.heard(updated, facts.WATCHED)


@stateful
@pytest.mark.parametrize(
    ("tool", "method"),
    [
        ("test_trigger_tool_change", "notifications/tools/list_changed"),
        ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
    ],
)
async def test_session_hears_of_changed_lists(
    connect: Connect, person: Person, tool: str, method: str
) -> None:
    async with connect() as client:
        await client.call_tool(tool)
        await eventually(lambda: person.heard(method))


@stateless
async def test_listening(connect: Connect) -> None:
    async with (
        connect() as client,
        client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resource_subscriptions=[facts.WATCHED],
        ) as subscription,
    ):
        honored = wire(subscription.honored)
        await client.call_tool("test_trigger_tool_change")
        await client.call_tool("drill_touch", {"uri": facts.STATIC_TEXT})
        await client.call_tool("test_trigger_prompt_change")
        await client.call_tool("drill_touch", {"uri": facts.WATCHED})
        async with asyncio.timeout(PATIENCE_S):
            events = await _events_until(
                subscription,
                ToolsListChanged(),
                PromptsListChanged(),
                ResourceUpdated(uri=facts.WATCHED),
            )
    assert honored == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": [facts.WATCHED],
    }
    assert ResourceUpdated(uri=facts.STATIC_TEXT) not in events


async def _events_until(subscription: Subscription, *wanted: object) -> list[object]:
    events: list[object] = []
    async for event in subscription:
        events.append(event)
        if all(each in events for each in wanted):
            break
    return events


@stateless
async def test_listening_keeps_to_its_filter(connect: Connect) -> None:
    async with (
        connect() as client,
        client.listen(prompts_list_changed=True) as subscription,
    ):
        await client.call_tool("test_trigger_tool_change")
        await client.call_tool("test_trigger_prompt_change")
        async with asyncio.timeout(PATIENCE_S):
            events = await _events_until(subscription, PromptsListChanged())
    assert events == [PromptsListChanged()]


@stateful
async def test_session_has_no_listening(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(ListenNotSupportedError):
            async with client.listen(tools_list_changed=True):
                pass


async def test_unknown_names(connect: Connect, era: str) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as tool:
            await client.call_tool("no_such_tool")
        with pytest.raises(MCPError) as prompt:
            await client.get_prompt("no_such_prompt")
        with pytest.raises(MCPError) as resource:
            await client.read_resource(facts.ABSENT)
    assert tool.value.code == INVALID_PARAMS
    assert prompt.value.code == INVALID_PARAMS
    assert resource.value.code == {STATEFUL: -32002, STATELESS: INVALID_PARAMS}[era]
    assert resource.value.data == {"uri": facts.ABSENT}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [({"a": "many", "b": 1}, "a"), ({"a": 1}, "b"), ({"a": 1, "b": 2, "c": 3}, "c")],
)
async def test_wrong_arguments_are_named(
    connect: Connect, arguments: dict[str, Any], path: str
) -> None:
    async with connect() as client:
        result = await client.call_tool("drill_add", arguments)
    assert result.is_error
    assert path in spoken(result)


async def test_numbers_as_strings_are_coerced(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("drill_add", {"a": "1", "b": 2})
    assert result.structured_content == {"result": 3}


async def test_prompt_lacks_an_argument(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("test_prompt_with_arguments", {"arg1": "one"})
    assert refused.value.code == INVALID_PARAMS


async def test_failures_of_tools(connect: Connect) -> None:
    async with connect() as client:
        told = await client.call_tool("test_error_handling")
        ordered = await client.call_tool("drill_fail", {"kind": "tool_error"})
        raised = await client.call_tool("drill_fail", {"kind": "exception"})
    assert (told.is_error, spoken(told)) == (True, facts.FAILURE)
    assert ordered.is_error
    assert spoken(ordered) == "This error was ordered by the caller."
    assert raised.is_error
    assert "ordered by the caller" not in spoken(raised)


@pytest.mark.parametrize("tool", ["drill_sleep", "drill_sleep_sync"])
async def test_cancelled_calls_make_room(connect: Connect, tool: str) -> None:
    try:
        async with connect() as client:
            sleeping = asyncio.gather(
                # More than the server has threads for user code.
                *(client.call_tool(tool, {"seconds": 600}) for _ in range(12)),
                return_exceptions=True,
            )
            await asyncio.sleep(0.5)
            sleeping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sleeping
            async with asyncio.timeout(PATIENCE_S):
                result = await client.call_tool("drill_add_sync", {"a": 1, "b": 1})
    except* ClosedResourceError:
        # It has closed, and an answer to what it cancelled comes only now.
        pass
    assert said(result) == "2"


@stateful
async def test_ping(connect: Connect) -> None:
    async with connect() as client:
        assert wire(await client.send_ping()) == {}


async def test_calls_side_by_side(connect: Connect) -> None:
    async with connect() as client:
        results = await asyncio.gather(
            *(client.call_tool("drill_add", {"a": i, "b": i}) for i in range(10)),
            *(client.call_tool("drill_add_sync", {"a": i, "b": i}) for i in range(10)),
        )
    assert [said(result) for result in results] == [
        str(2 * i) for i in [*range(10), *range(10)]
    ]


@pytest.mark.parametrize("region", ["eu-west-1", "Zürich", " padded ", ""])
async def test_mirrored_parameter(connect: Connect, region: str) -> None:
    async with connect() as client:
        await client.list_tools()
        result = await client.call_tool("test_x_mcp_header", {"region": region})
    assert said(result) == f"Region: {region}"
