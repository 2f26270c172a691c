"""A server whose tools are found by searching, as clients use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import DjangoDbBlocker

from mcp_app.catalog import definition_texts
from mcp_app.catalog.registry import Registry
from mcp_app.interface.server import CALL_READING_TOOL, CALL_TOOL, SEARCH_TOOLS
from mcp_app.models import Server, Stop
from mcp_app.models.stops import By, Scope
from mcp_app.process.runtime import Process
from mcp_app.server import searching
from tests.audit.reading import kept
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

BOTH: Final = [STATEFUL, STATELESS]
THREE: Final = {SEARCH_TOOLS, CALL_READING_TOOL, CALL_TOOL}
done: list[str] = []


SALARIES: Final = "Tell how much money people earn."


def found_registry(salaries: str) -> Registry:
    """Return tools of which one is listed, and one is for few."""
    registry = Registry()

    @registry.tool("order_status", tags=["listed"], read_only=True)
    def order_status(number: int) -> str:
        """Tell whether an order was sent."""
        return f"Order {number} was sent."

    @registry.tool("refund", tags=["money"], title="Refund an order")
    def refund(number: int) -> str:
        """Pay the money of an order back."""
        done.append(f"refund {number}")
        return "Paid back."

    @registry.tool("balance", tags=["money"], read_only=True)
    def balance() -> str:
        """Tell how much money there is."""
        return "Enough money."

    for_few = registry.tool(
        "salaries", permission="shop.salaries", read_only=True, description=salaries
    )
    for_few(lambda: "A lot of money.")
    return registry


@pytest.fixture
def salaries() -> str:
    return SALARIES


@pytest.fixture(autouse=True)
def served(
    salaries: str,
    served_rows: None,
    django_db_blocker: DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """A server that searches, at “found”."""
    monkeypatch.setattr("tests.behaviours.registry", found_registry(salaries))
    if salaries != SALARIES:
        # What an earlier process has loaded is of another registry.
        monkeypatch.setattr("tests.serving._warmth", {})
    done.clear()
    with django_db_blocker.unblock():
        row = published(
            Server(
                slug="found", access="header", listing="search", listed_tags="listed"
            )
        )
        try:
            yield
        finally:
            row.delete()


@pytest.fixture
def ask(connect: Connect) -> Any:
    async def ask(
        method: str, version: str = STATELESS, headers: Any = None, **params: Any
    ) -> Any:
        own = {"x-user": "1", **(headers or {})}
        client = await connect(version, path="/mcp/found", headers=own)
        return await client.request(method, params)

    return ask


async def call(ask: Any, name: str, arguments: Any, **more: Any) -> Any:
    return (await ask("tools/call", name=name, arguments=arguments, **more)).result


async def search(ask: Any, query: str, **more: Any) -> Any:
    result = await call(ask, SEARCH_TOOLS, {"query": query}, **more)
    assert json.loads(result["content"][0]["text"])["total"] >= 0
    return json.loads(result["content"][0]["text"])


def names(found: Any) -> list[str]:
    return [each["name"] for each in found["tools"]]


@pytest.mark.parametrize("version", BOTH)
async def test_the_list(ask: Any, version: str) -> None:
    tools = (await ask("tools/list", version)).result["tools"]
    assert {each["name"] for each in tools} == {"order_status", *THREE}


@pytest.mark.parametrize("version", BOTH)
async def test_searching(ask: Any, version: str) -> None:
    found = await search(ask, "money", version=version)
    assert set(names(found)) == {"refund", "balance"}
    assert found["total"] == 2
    assert "note" not in found
    (refund,) = (each for each in found["tools"] if each["name"] == "refund")
    # As in tools/list.
    assert refund["inputSchema"]["required"] == ["number"]
    assert refund["title"] == "Refund an order"
    # What is listed is found, too.
    assert names(await search(ask, "order sent", version=version))[0] == "order_status"


async def test_the_limit(ask: Any) -> None:
    result = await call(ask, SEARCH_TOOLS, {"query": "money", "limit": 1})
    found = result["structuredContent"]
    assert (len(found["tools"]), found["total"]) == (1, 2)
    assert found["note"] == "1 more fit. Search with more words."
    nothing = await search(ask, "zebra")
    assert nothing == {
        "tools": [],
        "total": 0,
        "note": "No tool fits. Search with other words.",
    }


async def test_hidden_tools_are_not_found(ask: Any) -> None:
    assert names(await search(ask, "salaries earn")) == []
    own = {"x-permissions": "shop.salaries"}
    assert names(await search(ask, "salaries earn", headers=own)) == ["salaries"]
    assert (await search(ask, "money"))["total"] == 2
    assert (await search(ask, "money", headers=own))["total"] == 3


@pytest.mark.parametrize("salaries", [SALARIES, "Nothing.", "Money order. " * 30])
async def test_texts_of_hidden_tools_change_no_answer(ask: Any, salaries: str) -> None:
    """Neither which are found, nor their order, nor how many there are."""
    found = await search(ask, "money order")
    assert names(found) == ["refund", "order_status", "balance"]
    assert found["total"] == 3
    assert names(await search(ask, "nothing earn")) == []
    own = {"x-permissions": "shop.salaries"}
    word = salaries.rsplit(maxsplit=1)[-1]
    assert "salaries" in names(await search(ask, word, headers=own))


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("own", [CALL_TOOL, CALL_READING_TOOL])
async def test_calling(ask: Any, process: Process, own: str, version: str) -> None:
    arguments = {"name": "balance"}
    result = await call(ask, own, arguments, version=version)
    assert result["content"][0]["text"] == "Enough money."
    (row,) = await kept(process)
    # The log names the real tool.
    assert (row.name, row.outcome) == ("balance", "answered")


async def test_calling_with_arguments(ask: Any) -> None:
    arguments = {"name": "refund", "arguments": {"number": 5}}
    result = await call(ask, CALL_TOOL, arguments)
    assert result["content"][0]["text"] == "Paid back."
    assert done == ["refund 5"]
    wrong = await call(ask, CALL_TOOL, {"name": "refund", "arguments": {"n": 5}})
    assert wrong["isError"]
    assert "Invalid arguments for refund" in wrong["content"][0]["text"]
    by_name = await call(ask, "refund", {"number": 6})
    assert by_name["content"][0]["text"] == "Paid back."


@pytest.mark.parametrize("version", BOTH)
async def test_arguments_as_text(ask: Any, version: str) -> None:
    """Some models send an object as its JSON, as to any other tool."""
    arguments = {"name": "refund", "arguments": '{"number": 5}'}
    result = await call(ask, CALL_TOOL, arguments, version=version)
    assert result["content"][0]["text"] == "Paid back."
    no_object = await call(ask, CALL_TOOL, {**arguments, "arguments": "[5"})
    assert "Invalid arguments for call_tool" in no_object["content"][0]["text"]


async def test_what_changes_things_is_not_called_as_reading(ask: Any) -> None:
    arguments = {"name": "refund", "arguments": {"number": 5}}
    result = await call(ask, CALL_READING_TOOL, arguments)
    assert result["isError"]
    said = result["content"][0]["text"]
    assert said == "refund changes things: call it with call_tool."
    assert not done


@pytest.mark.parametrize("own", [CALL_TOOL, CALL_READING_TOOL])
@pytest.mark.parametrize("meant", ["salaries", "gone"])
async def test_what_is_hidden_is_unknown(ask: Any, own: str, meant: str) -> None:
    outcome = await ask("tools/call", name=own, arguments={"name": meant})
    assert outcome.error["code"] == -32602
    assert outcome.error["message"] == f"Unknown tool: {meant}"


@pytest.mark.parametrize("meant", [*THREE])
async def test_no_tool_calls_itself(ask: Any, meant: str) -> None:
    arguments = {"name": meant, "arguments": {"name": "refund"}}
    result = await call(ask, CALL_TOOL, arguments)
    said = result["content"][0]["text"]
    assert said == f"{meant} is called by its own name, not with call_tool."


@pytest.mark.parametrize(
    "arguments",
    [{}, {"name": 5}, {"name": "refund", "arguments": []}, {"name": "a", "more": 1}],
)
async def test_calls_that_are_not_well_formed(ask: Any, arguments: Any) -> None:
    result = await call(ask, CALL_TOOL, arguments)
    assert result["isError"]
    assert "Invalid arguments for call_tool" in result["content"][0]["text"]


async def test_a_token_that_reads(ask: Any) -> None:
    reads = {"x-may": "read"}
    tools = (await ask("tools/list", headers=reads)).result["tools"]
    assert {each["name"] for each in tools} == {"order_status", *THREE} - {CALL_TOOL}
    assert names(await search(ask, "money", headers=reads)) == ["balance"]
    arguments = {"name": "balance"}
    outcome = await ask(
        "tools/call", headers=reads, name=CALL_TOOL, arguments=arguments
    )
    assert outcome.status == 403
    assert "call_tool can change something" in outcome.error["message"]
    refund = {"name": "refund"}
    outcome = await ask(
        "tools/call", headers=reads, name=CALL_READING_TOOL, arguments=refund
    )
    assert "refund can change something" in outcome.error["message"]
    result = await call(ask, CALL_READING_TOOL, arguments, headers=reads)
    assert result["content"][0]["text"] == "Enough money."


async def test_a_token_with_a_tag(ask: Any) -> None:
    tagged = {"x-tags": "money"}
    tools = (await ask("tools/list", headers=tagged)).result["tools"]
    assert {each["name"] for each in tools} == THREE
    found = await search(ask, "order money", headers=tagged)
    assert set(names(found)) == {"refund", "balance"}


def _end_stops() -> None:
    keys = [*Stop.objects.values_list("pk", flat=True)]
    Stop.objects.end(keys, by=By("lee"))


async def test_a_stop_holds(ask: Any, django_db_blocker: DjangoDbBlocker) -> None:
    from mcp_app.pools.database import writer  # noqa: PLC0415

    await writer.run(lambda: Stop.objects.make(Scope.CHANGES, by=By("lee")))
    try:
        arguments = {"name": "refund", "arguments": {"number": 5}}
        result = await call(ask, CALL_TOOL, arguments)
        assert result["isError"]
        assert not done
        read = await call(ask, CALL_TOOL, {"name": "balance"})
        assert read["content"][0]["text"] == "Enough money."
    finally:
        await writer.run(_end_stops)


async def test_what_runs_once_runs_once(connect: Connect) -> None:
    """A request that is sent again, in a session, gets the answer of the first."""
    client = await connect(STATEFUL, path="/mcp/found", headers={"x-user": "1"})
    arguments = {"name": "refund", "arguments": {"number": 7}}
    params = {"name": CALL_TOOL, "arguments": arguments}
    first = await client.request("tools/call", params, id=77)
    again = await client.request("tools/call", params, id=77)
    assert first.result == again.result
    assert done == ["refund 7"]


async def test_answers_that_are_too_large(
    ask: Any, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace  # noqa: PLC0415

    limits = replace(process.adapters.limits, tool_result=2_000)
    adapters = replace(process.adapters, limits=limits)
    monkeypatch.setattr(process, "adapters", adapters)
    found = await search(ask, "money")
    assert len(found["tools"]) == 1
    assert found["note"].startswith("Only 1 fit into one answer.")


async def test_without_full_text(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "has_full_text", lambda: False)
    result = await call(ask, SEARCH_TOOLS, {"query": "money"})
    assert result["isError"]


async def test_indexes_are_made_once(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counting(definition_texts.SearchIndex):
        def __init__(self, tools: Any) -> None:
            made.append(1)
            super().__init__(tools)

    monkeypatch.setattr(searching, "SearchIndex", Counting)
    searching._of_catalogs.clear()
    for _ in range(3):
        await search(ask, "money")
    assert len(made) == 1
    await search(ask, "money", headers={"x-permissions": "shop.salaries"})
    assert len(made) == 2
