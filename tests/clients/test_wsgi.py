"""The Python SDK's client at the endpoint under gunicorn, without streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import pytest
from mcp import Client, MCPError

from tests.clients import facts
from tests.clients.facts import STATEFUL, STATELESS
from tests.clients.person import Person, wire
from tests.clients.test_python_sdk import METHOD_NOT_FOUND, MODES, pages, said, spoken

pytestmark = pytest.mark.filterwarnings(
    # The SDK calls the members of the older era deprecated.
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
)
SERVER = "gunicorn"


@asynccontextmanager
async def connected(endpoint: str, era: str, person: Person) -> AsyncIterator[Client]:
    client = Client(
        endpoint,
        mode=MODES[era],
        elicitation_callback=person.elicit,
        sampling_callback=person.sample,
        list_roots_callback=person.list_roots,
        logging_callback=person.log,
        message_handler=person.hear,
    )
    async with client:
        assert client.protocol_version == era
        yield client


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture
def connect(endpoint: str, era: str, person: Person) -> Connect:
    return partial(connected, endpoint, era, person)


async def test_what_needs_a_stream_is_not_advertised(connect: Connect) -> None:
    async with connect() as client:
        capabilities = wire(client.server_capabilities)
        assert capabilities == {
            "tools": {},
            "resources": {},
            "prompts": {},
            "completions": {},
        }


@pytest.mark.long
async def test_lists(connect: Connect) -> None:
    async with connect() as client:
        found = await pages(lambda cursor: client.list_tools(cursor=cursor))
        assert len(found) > 1
        assert set(facts.CONTENT) <= {
            tool.name for page in found for tool in page.tools
        }
        assert {each.name for each in (await client.list_prompts()).prompts}


@pytest.mark.long
@pytest.mark.parametrize("tool", ["drill_add", "drill_add_sync"])
async def test_calls(connect: Connect, tool: str) -> None:
    async with connect() as client:
        for number in range(20):
            assert said(await client.call_tool(tool, {"a": number, "b": 1})) == str(
                number + 1
            )


async def test_what_is_told_on_the_way_is_dropped(connect: Connect) -> None:
    async with connect() as client:
        told: list[float] = []

        async def progress(
            progress: float, total: float | None, message: str | None
        ) -> None:
            told.append(progress)

        result = await client.call_tool(
            "drill_count", {"n": 3, "delay_ms": 10}, progress_callback=progress
        )
        assert said(result) == "done 3"
        assert told == []


@pytest.mark.long
@pytest.mark.parametrize("era", [STATELESS])
async def test_a_question_comes_with_the_answer_of_the_stateless_era(
    connect: Connect,
) -> None:
    async with connect() as client:
        result = await client.call_tool("test_input_required_result_list_roots", {})
        assert not result.is_error, result.content


@pytest.mark.parametrize("era", [STATEFUL])
@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync"])
async def test_a_question_in_a_session_is_refused(connect: Connect, tool: str) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, {"question": "Which?"})
        assert result.is_error
        # It is not the client's fault.
        assert "WSGI" in spoken(result)
        assert "cannot be asked" in spoken(result)


@pytest.mark.long
@pytest.mark.parametrize("era", [STATEFUL])
async def test_levels_and_subscriptions_are_refused(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as refused:
            await client.set_logging_level("info")
        assert refused.value.code == METHOD_NOT_FOUND
        assert "needs a stream" in str(refused.value)
        with pytest.raises(MCPError) as refused:
            await client.subscribe_resource(facts.WATCHED)
        assert refused.value.code == METHOD_NOT_FOUND
