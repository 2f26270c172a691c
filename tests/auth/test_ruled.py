"""Groups, rules and permissions for one object: lists, calls and streams agree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from mcp_app.invalidation.changes import changed
from mcp_app.models import Server
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.asgi_client import Client
from tests.behaviours import stage
from tests.drill.models import Ledger
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

BY_NAME: Final = {"AUTHENTICATION": {"header": "tests.auth.callables.by_name"}}

pytestmark = [
    pytest.mark.usefixtures("served_rows"),
    pytest.mark.parametrize("mcp", [BY_NAME]),
]

RULED: Final = "/mcp/ruled"
ALL: Final = frozenset({"open_branch", "withdraw"})
"""Tools that everybody sees."""
VERSIONS: Final = pytest.mark.parametrize("version", [STATEFUL, STATELESS])


def _people() -> dict[str, Any]:
    suffix = uuid4().hex[:4]
    made = get_user_model().objects.create_user
    people: dict[str, Any] = {
        "plain": made(f"ana{suffix}"),
        "guard": made(f"guardian-of-{suffix}"),
    }
    people["group"], _ = Group.objects.get_or_create(name="guards")
    people["guard"].groups.add(people["group"])
    people["boss"] = get_user_model().objects.create_superuser(f"boss{suffix}")
    people["ledger"] = Ledger.objects.create(key=suffix, worker=f"ana{suffix}")
    return people


def _erase(people: dict[str, Any]) -> None:
    for each in people.values():
        each.delete()


@pytest.fixture
async def people(served_rows: None) -> AsyncIterator[dict[str, Any]]:
    made = await writer.run(_people)
    yield made
    await writer.run(_erase, made)


async def all_told(process: Process) -> None:
    """Wait until what was changed before is told: who begins meanwhile hears of it."""
    await process.gate.wait_for_check()
    telling = process.announcements._tasks
    async with asyncio.timeout(60):
        while telling:
            await asyncio.gather(*telling, return_exceptions=True)
            # From Python 3.12 on, what has ended is not waited for at all.
            await asyncio.sleep(0)


def header(person: Any) -> dict[str, str]:
    return {"x-name": person.username}


async def tools(client: Client) -> set[str]:
    found = (await client.request("tools/list")).result["tools"]
    return {tool["name"] for tool in found}


@pytest.mark.databases
@VERSIONS
@pytest.mark.parametrize(
    ("who", "sees"),
    [
        ("plain", {*ALL, "for_short_names"}),
        ("guard", {*ALL, "for_groups"}),
        ("boss", {*ALL, "for_groups", "for_short_names"}),
    ],
)
async def test_lists_and_calls_agree(
    people: dict[str, Any], connect: Connect, version: str, who: str, sees: set[str]
) -> None:
    client = await connect(version, path=RULED, headers=header(people[who]))
    for _ in range(2):
        assert await tools(client) == sees
    unknown = (await client.call("unheard_of")).error
    for name in ("for_groups", "for_short_names"):
        found = await client.call(name)
        if name in sees:
            assert found.result["content"][0]["text"] == name.replace("_", " ")
        else:
            said = unknown["message"].replace("unheard_of", name)
            assert found.error == {**unknown, "message": said}


@VERSIONS
async def test_a_rule_that_looks_at_arguments(
    people: dict[str, Any], connect: Connect, version: str
) -> None:
    client = await connect(version, path=RULED, headers=header(people["plain"]))
    stage().told.clear()
    fine = await client.call("withdraw", amount=100)
    assert not fine.result.get("isError")
    refused = (await client.call("withdraw", amount=101)).result
    assert refused["isError"]
    said = "You may not use withdraw with these arguments."
    assert refused["content"][0]["text"] == said
    assert stage().told == ["withdrew 100"]
    named = {"name": "withdrawal", "arguments": {"amount": "101"}}
    error = (await client.request("prompts/get", named)).error
    assert (error["code"], error["message"]) == (
        -32602,
        "You may not use withdrawal with these arguments.",
    )
    named["arguments"] = {"amount": "7"}
    assert (await client.request("prompts/get", named)).result["messages"]


async def test_a_header_gives_no_right(
    people: dict[str, Any], connect: Connect
) -> None:
    """Header and body agree on a branch that is another's: it stays closed."""
    client = await connect(STATELESS, path=RULED, headers=header(people["plain"]))
    stage().told.clear()
    for branch, may in (("ana", True), ("boss", False)):
        asked = {"name": "open_branch", "arguments": {"branch": branch}}
        headers = {"mcp-param-branch": branch}
        found = await client.request("tools/call", asked, headers=headers)
        assert bool(found.result.get("isError")) is not may
    assert stage().told == ["opened ana"]


@pytest.mark.databases
@VERSIONS
async def test_permissions_for_one_object(
    people: dict[str, Any], connect: Connect, settings: LazySettings, version: str
) -> None:
    """What one may not see is what does not exist, and cannot be watched."""
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "tests.auth.backends.ByWorker",
    ]
    uri = f"ledger://{people['ledger'].key}"
    for who, may in (("plain", True), ("guard", False), ("boss", True)):
        client = await connect(version, path=RULED, headers=header(people[who]))
        listed = await client.request("resources/templates/list")
        shown = {each["uriTemplate"] for each in listed.result["resourceTemplates"]}
        assert "ledger://{key}" in shown
        found = await client.request("resources/read", {"uri": uri}, id=7)
        missing = await client.request("resources/read", {"uri": "ledger://0"}, id=7)
        if may:
            assert found.result["contents"][0]["text"].startswith("the ledger")
        else:
            said = missing.raw.replace(b"ledger://0", uri.encode())
            assert found.raw == said
        if version == STATEFUL:
            watched = await client.request("resources/subscribe", {"uri": uri})
            assert ("error" in watched.answer) is not may


@VERSIONS
async def test_what_is_hidden_hides_nothing_else(
    people: dict[str, Any], connect: Connect, version: str
) -> None:
    """A template answers where the resource of that address is not for the caller."""
    for who, text in (("plain", "some safe: first"), ("boss", "the first safe")):
        client = await connect(version, path=RULED, headers=header(people[who]))
        found = await client.request("resources/read", {"uri": "safe://first"})
        assert found.result["contents"][0]["text"] == text


@pytest.mark.databases
@VERSIONS
async def test_a_server_that_not_everybody_may_use(
    people: dict[str, Any], connect: Connect, version: str
) -> None:
    for who in ("guard", "boss"):
        client = await connect(
            version, path="/mcp/guarded", headers=header(people[who])
        )
        assert (await client.request("tools/list")).status == 200
    stranger = await connect(version, path=RULED, headers=header(people["plain"]))
    stranger.path = "/mcp/guarded"
    refused = await stranger.request("tools/list")
    assert refused.status == 403
    assert "www-authenticate" not in refused.headers


@pytest.mark.databases
async def test_a_changed_group_is_told_to_its_people(
    people: dict[str, Any], connect: Connect, process: Process
) -> None:
    """And to nobody else; the next call is judged anew."""
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    streams = {}
    await all_told(process)
    for who in ("guard", "plain"):
        client = await connect(STATELESS, path=RULED, headers=header(people[who]))
        streams[who] = client.begin("subscriptions/listen", wanted)
        await streams[who].message()
    await writer.run(people["guard"].groups.remove, people["group"])
    await process.gate.wait_for_check()
    told = await streams["guard"].message()
    assert told is not None
    assert told["method"] == "notifications/tools/list_changed"
    prompts = await streams["guard"].message()
    assert prompts is not None
    assert prompts["method"] == "notifications/prompts/list_changed"
    await streams["plain"].quiet()
    client = await connect(STATELESS, path=RULED, headers=header(people["guard"]))
    assert "for_groups" not in await tools(client)
    assert "error" in (await client.call("for_groups")).answer
    for stream in streams.values():
        await stream.leave()


@pytest.mark.databases
async def test_what_one_may_not_read_any_more_is_not_told(
    people: dict[str, Any], connect: Connect, process: Process, settings: LazySettings
) -> None:
    settings.AUTHENTICATION_BACKENDS = ["tests.auth.backends.ByWorker"]
    uri, own = f"ledger://{people['ledger'].key}", people["ledger"].worker
    rows = Ledger.objects.filter(pk=people["ledger"].pk)
    client = await connect(STATELESS, path=RULED, headers=header(people["plain"]))
    wanted = {"notifications": {"resourceSubscriptions": [uri]}}
    stream = client.begin("subscriptions/listen", wanted)
    acknowledged = await stream.message()
    assert acknowledged is not None
    assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == [uri]
    for worker, told in (("another", False), (own, True)):
        await writer.run(rows.update, worker=worker)
        await writer.run(changed, uri)
        await process.gate.wait_for_check()
        if told:
            message = await stream.message()
            assert message is not None
            assert message["params"]["uri"] == uri
        else:
            await stream.quiet()
    await stream.leave()


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_what_not_everybody_sees_is_kept_by_no_shared_cache(
    people: dict[str, Any], connect: Connect, process: Process, method: str
) -> None:
    row = Server(slug="public-ruled", access="public", rule="modest")
    await writer.run(published, row)
    await process.gate.wait_for_check()
    try:
        client = await connect(
            STATELESS, path="/mcp/public-ruled", headers=header(people["plain"])
        )
        result = (await client.request(method)).result
        assert result["cacheScope"] == "private"
    finally:
        await writer.run(row.delete)
