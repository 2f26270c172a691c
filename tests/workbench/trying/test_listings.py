"""What a client sees of a server, page by page."""

from __future__ import annotations

import pytest

from mcp_app.interface.principal import CONSOLE, Principal
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.revisions import LATEST
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.listings import read_lists
from tests.asgi_client import Client
from tests.behaviours import SECRET
from tests.serving import Connect


def caller(user: str = "", *permissions: str) -> Caller:
    principal = Principal(
        kind=CONSOLE, user_id=user, client="ana", permissions=frozenset(permissions)
    )
    return Caller(
        principal=principal,
        person="u1",
        revision=LATEST,
        name="What clients see",
        capabilities={},
    )


async def listed(client: Client, method: str, member: str, name: str) -> list[str]:
    found: list[str] = []
    params: dict[str, str] = {}
    while True:
        result = (await client.request(method, params)).result
        found += [each[name] for each in result[member]]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


async def test_all_pages_of_all_lists(connect: Connect, process: Process) -> None:
    client = await connect(LATEST.version, path="/mcp/pages")
    seen = await read_lists("pages", caller())
    tools = [each.identity for each in seen.items["tools"]]
    assert tools == await listed(client, "tools/list", "tools", "name")
    assert len(tools) > process.catalogs.by_slug["pages"].server.page_size
    uris = [each.identity for each in seen.items["resources"]]
    assert uris == await listed(client, "resources/list", "resources", "uri")
    assert seen.token_count == sum(
        each.tokens for items in seen.items.values() for each in items
    )


async def test_rows_are_named_by_their_keys(process: Process) -> None:
    seen = await read_lists("default", caller())
    by_name = {each.identity: each for each in seen.items["tools"]}
    key = by_name["drill_add"].key
    assert key is not None
    assert key[0] == "tool"
    assert key == process.catalogs.by_slug["default"].tools["drill_add"].key


async def test_who_is_turned_away_sees_nothing(process: Process) -> None:
    nobody = await read_lists("private", caller())
    assert (nobody.refused, nobody.items) == (401, {})
    missing = await read_lists("missing", caller())
    assert (missing.refused, missing.token_count) == (404, 0)
    off = await read_lists("off", caller())
    assert off.refused == 503


async def test_a_list_that_nobody_has_read_is_not_empty(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RequestRefused(429, "Too many requests.")

    monkeypatch.setattr(process, "check_share", refuse)
    seen = await read_lists("default", caller())
    assert (seen.items, seen.reason) == ({}, "Too many requests.")


async def test_a_list_depends_on_rights(process: Process) -> None:
    some = await read_lists("private", caller("7"))
    more = await read_lists("private", caller("7", SECRET))
    assert {each.identity for each in some.items["tools"]} < {
        each.identity for each in more.items["tools"]
    }
