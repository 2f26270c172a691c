"""resources/read, resources/subscribe, resources/unsubscribe."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import Client, Outcome
from tests.behaviours import BYTES, SECRET
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST
from tests.serving import Connect, counted

NEWEST: Final = "2026-07-28"


async def read(client: Client, uri: Any) -> Outcome:
    return await client.request("resources/read", {"uri": uri})


def missing(client: Client, found: Outcome, uri: str) -> None:
    code = client.revision.missing_resource_code
    assert found.status == 200
    assert found.error == {
        "code": code,
        "message": "Resource not found",
        "data": {"uri": uri},
    }


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_read(client: Client) -> None:
    result = (await read(client, "memo://fixed")).result
    (contents,) = result["contents"]
    assert contents == {"uri": "memo://fixed", "mimeType": "text/plain", "text": "memo"}
    (contents,) = (await read(client, "memo://value/bytes")).result["contents"]
    assert base64.b64decode(contents["blob"]) == BYTES
    (contents,) = (await read(client, "memo://value/json")).result["contents"]
    assert contents["mimeType"] == "application/json"
    assert json.loads(contents["text"]) == {"a": 1}
    (contents,) = (await read(client, "memo://number/7")).result["contents"]
    assert (contents["uri"], contents["text"]) == ("memo://number/7", "number 7")


@pytest.mark.parametrize("version", REVISIONS)
async def test_several_contents(client: Client, version: str) -> None:
    one, two = (await read(client, "memo://many")).result["contents"]
    assert (one["uri"], one["text"]) == ("memo://many/1", "one")
    assert base64.b64decode(two["blob"]) == BYTES
    assert ("_meta" in one) == (version >= "2025-06-18")


MISSING: Final = [
    *("memo://nothing", "memo://value/missing", "memo://number/seven", "memo://FIXED"),
    *("memo://fixed/", "memo:", "", "no uri at all", "memo://number/7\n"),
    *("memo://value/a\0b", "memo://value/\xe9"),
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_is_not_there(client: Client) -> None:
    for uri in MISSING:
        headers = {"mcp-name": encoded(uri)} if client.revision.stateless else {}
        found = await client.request("resources/read", {"uri": uri}, headers=headers)
        missing(client, found, uri)


FILES: Final = [
    *("file:///etc/passwd", "/etc/passwd", "memo://fixed/../../../../etc/passwd"),
    "memo://value/../../../../etc/passwd",
    *("memo://value/..%2F..%2F..%2Fetc%2Fpasswd", "memo://value/%2Fetc%2Fpasswd"),
    "memo://number/..%5C7",
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_t29_no_uri_names_a_file(client: Client) -> None:
    """What a template takes as a value is for the function, and no path."""
    for uri in FILES:
        missing(client, await read(client, uri), uri)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_wrong_params(client: Client) -> None:
    wrong: list[Any] = [None, 7, [], "a:" + "b" * 4095]
    for uri in wrong:
        found = await client.request("resources/read", {"uri": uri})
        assert (found.status, found.error["code"]) == (200, -32602)
        assert "params.uri" in found.error["message"]
    assert (await client.request("resources/read")).error["code"] == -32602


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_unknown_and_hidden_resources_are_the_same(
    connect: Connect, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    for uri in ("vault://list", "vault://item/gold", "vault://no/way"):
        missing(client, await read(client, uri), uri)
        if client.revision.sessions:
            params = {"uri": uri}
            found = await client.request("resources/subscribe", params)
            missing(client, found, uri)
    rights = {"x-user": "a", "x-permissions": SECRET}
    client = await connect(version, path="/mcp/private", headers=rights)
    (contents,) = (await read(client, "vault://item/gold")).result["contents"]
    assert contents["text"] == "gold"


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_failures(client: Client) -> None:
    for uri in ("memo://value/raises", "memo://value/unheard-of"):
        found = await read(client, uri)
        assert (found.status, found.error["code"]) == (200, -32603)
        assert "secret" not in found.error["message"]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", NEWEST])
async def test_a_resource_that_asks(client: Client) -> None:
    answer = {"action": "accept", "content": {"item": "tea"}}
    found = await client.talk(
        "resources/read", {"uri": "memo://asks"}, lambda method, params: answer
    )
    assert found.result["contents"][0]["text"] == "1 tea"
    if client.revision.stateless:
        # What depends on answers is in no cache's key.
        assert (found.result["ttlMs"], found.result["cacheScope"]) == (0, "private")


CACHED: Final[list[tuple[str, str, dict[str, str], int, str]]] = [
    ("/mcp", "memo://fixed", {}, 1000, "public"),
    ("/mcp", "memo://number/7", {}, 0, "private"),
    ("/mcp", "test://static-text", {}, 0, "private"),
    # No server with sign-in has anything public, whatever the definition says.
    ("/mcp/private", "hall://list", {"x-user": "a"}, 5, "private"),
]


@pytest.mark.parametrize(("path", "uri", "headers", "ttl", "scope"), CACHED)
async def test_cache_hints(
    connect: Connect, path: str, uri: str, headers: dict[str, str], ttl: int, scope: str
) -> None:
    client = await connect(NEWEST, path=path, headers=headers)
    result = (await read(client, uri)).result
    assert (result["ttlMs"], result["cacheScope"]) == (ttl, scope)
    older = await connect("2025-11-25", path=path, headers=headers)
    assert (await read(older, uri)).result.keys() == {"contents"}


@pytest.mark.parametrize(
    "brought", [{"inputResponses": {}}, {"inputResponses": {"a": {}}}]
)
async def test_what_brought_answers_is_not_kept(
    client: Client, brought: dict[str, Any]
) -> None:
    params = {"uri": "memo://fixed", **brought}
    result = (await client.request("resources/read", params)).result
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


# -- subscriptions of a session -------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_subscribe(client: Client) -> None:
    for method, count in (
        *(("resources/unsubscribe", 0), ("resources/subscribe", 1)),
        *(("resources/subscribe", 1), ("resources/unsubscribe", 0)),
        *(("resources/unsubscribe", 0), ("resources/subscribe", 1)),
    ):
        found = await client.request(method, {"uri": "memo://number/7"})
        assert found.result == {}
        assert (await counted())["Subscription"] == count
    for uri in ("memo://nothing", "memo://number/7\n"):
        missing(client, await client.request("resources/subscribe", {"uri": uri}), uri)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        for wrong in (None, 7, "a:" + "b" * 4095):
            found = await client.request(method, {"uri": wrong})
            assert found.error["code"] == -32602
    assert (await counted())["Subscription"] == 1
