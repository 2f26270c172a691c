"""Tests of `mcp_app/server/handlers/definitions.py`."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.models import Resource
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol import cursors
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.protocol.schemas import check_schema
from tests.asgi_client import PREFIX, Client, JsonObject, Outcome
from tests.behaviours import BLOCKS, DRAFT_07, SECRET
from tests.marks import NEWEST_FIRST
from tests.published import published
from tests.server.handlers.test_tools import violations
from tests.serving import Connect

NEWEST: Final = "2026-07-28"
LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
FOREIGN: Final = "The cursor does not come from this list. List again without a cursor."


async def pages(client: Client, method: str) -> list[list[JsonObject]]:
    found: list[list[JsonObject]] = []
    params: JsonObject = {}
    while True:
        result = (await client.request(method, params)).result
        found.append(result[LISTS[method]])
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


async def listed(client: Client, method: str = "tools/list") -> dict[str, JsonObject]:
    return {each["name"]: each for page in await pages(client, method) for each in page}


# -- order and pages ------------------------------------------------------------


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_lists_go_by_position_then_by_name(
    connect: Connect, version: str
) -> None:
    client = await connect(version, path="/mcp/pages")
    for method in ("tools/list", "resources/list", "prompts/list"):
        names = [
            [each["name"] for each in page] for page in await pages(client, method)
        ]
        assert names == [["page_b", "page_d"], ["page_a", "page_c"], ["page_e"]]
    templates = await pages(client, "resources/templates/list")
    uris = [[each["uriTemplate"] for each in page] for page in templates]
    # These have one name: their templates tell them apart.
    assert uris == [
        ["page://b/{id}", "page://d/{id}"],
        ["page://a/{id}", "page://c/{id}"],
        ["page://e/{id}"],
    ]


async def test_long_uris_have_a_place(connect: Connect) -> None:
    """They do not fit into a cursor; pages end at them all the same."""
    uris = {f"long://{number}/{'x' * 7000}" for number in range(5)}
    rows = [
        Resource(
            name="\N{PARROT}" * 128,
            uri=uri,
            config='{"text": ""}',
            tags="paged",
            position=-1,
        )
        for uri in uris
    ]
    for row in rows:
        await writer.run(published, row)
    client = await connect(NEWEST, path="/mcp/pages")
    found = await pages(client, "resources/list")
    for row in rows:
        await writer.run(row.delete)
    assert [len(page) for page in found] == [2, 2, 2, 2, 2]
    assert {each["uri"] for page in found[:3] for each in page} > uris
    assert [each["name"] for each in found[3]] == ["page_d", "page_a"]


async def test_a_whole_list_has_no_cursor(connect: Connect) -> None:
    client = await connect("2025-11-25", path="/mcp/tagged")
    for method in LISTS:
        result = (await client.request(method)).result
        assert "nextCursor" not in result
        assert len(result[LISTS[method]]) == (0 if "templates" in method else 1)


async def test_pages_of_the_fixtures(client: Client) -> None:
    found = await pages(client, "tools/list")
    assert [len(page) == 100 for page in found[:-1]] == [True] * (len(found) - 1)
    everything = [each["name"] for page in found for each in page]
    assert len(everything) == len(set(everything)) > 100


# -- cursors --------------------------------------------------------------------


async def first_cursor(client: Client, method: str = "tools/list") -> str:
    cursor: str = (await client.request(method)).result["nextCursor"]
    return cursor


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_cursors_that_nobody_gave(connect: Connect, version: str) -> None:
    client = await connect(version, path="/mcp/pages")
    cursor = await first_cursor(client)
    padded = cursor + "=" * (-len(cursor) % 4)
    elsewhere = await connect(version, path="/mcp/private", headers={"x-user": "ada"})
    other_list = await first_cursor(client, "prompts/list")
    other_server = await first_cursor(elsewhere)
    wrong = [
        *("", "x", "2", f"{cursor}-TAMPERED", f"{cursor}A", cursor[:-1], f" {cursor}"),
    ]
    wrong += [padded + "=", cursor.swapcase(), "\xe9", "A" * 2000, other_list]
    for each in [*wrong, other_server]:
        found = await client.request("tools/list", {"cursor": each})
        assert (found.status, found.error) == (
            200,
            {"code": -32602, "message": FOREIGN},
        )


@pytest.mark.parametrize("cursor", [7, True, [], {}])
async def test_a_cursor_is_text(stateful: Client, cursor: Any) -> None:
    found = await stateful.request("tools/list", {"cursor": cursor})
    assert (found.status, found.error["code"]) == (200, -32602)


async def test_a_cursor_is_a_place(connect: Connect, process: Process) -> None:
    """It survives a process, and what it names need not be there any more."""
    client = await connect(NEWEST, path="/mcp/pages")
    keys = process.adapters.cursor_keys
    for position, name, expected in (
        *((-1, "zzz", "page_b"), (0, "page_c", "page_d"), (0, "zzz", "page_a")),
        (1, "page_d", "page_e"),
    ):
        cursor = cursors.seal_cursor(Cursor("pages", "tools", position, name), keys[0])
        result = (await client.request("tools/list", {"cursor": cursor})).result
        assert result["tools"][0]["name"] == expected
    cursor = cursors.seal_cursor(Cursor("pages", "tools", 9, ""), keys[0])
    result = (await client.request("tools/list", {"cursor": cursor})).result
    assert result["tools"] == []
    assert "nextCursor" not in result


@pytest.mark.parametrize("mcp", [{"STATE_KEYS": ["new " * 10, "old " * 10]}])
async def test_keys_are_rotated(connect: Connect, process: Process) -> None:
    client = await connect(NEWEST, path="/mcp/pages")
    new, old = process.adapters.cursor_keys
    place = Cursor("pages", "tools", 0, "page_b")
    assert await first_cursor(client) == cursors.seal_cursor(
        Cursor("pages", "tools", 0, "page_d"), new
    )
    params = {"cursor": cursors.seal_cursor(place, old)}
    assert "tools" in (await client.request("tools/list", params)).result
    params = {"cursor": cursors.seal_cursor(place, b"gone" * 8)}
    assert (await client.request("tools/list", params)).error["code"] == -32602


# -- what is hidden -------------------------------------------------------------


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_hidden_entries_are_not_listed(connect: Connect, version: str) -> None:
    options = {"path": "/mcp/private"}
    few = await connect(version, headers={"x-user": "a"}, **options)
    many = await connect(
        version, headers={"x-user": "b", "x-permissions": SECRET}, **options
    )
    for method, hidden in (
        ("tools/list", {"secret", "secret_too"}),
        ("resources/list", {"vault_list"}),
        ("resources/templates/list", {"rack", "vault_item"}),
        ("prompts/list", {"secret_prompt"}),
    ):
        seen_by_few, seen_by_many = (
            await listed(few, method),
            await listed(many, method),
        )
        assert seen_by_many.keys() - seen_by_few.keys() == hidden
        assert hidden.isdisjoint(seen_by_few)
    # Pages are full, whatever was left out between their entries.
    sizes = [len(page) for page in await pages(few, "tools/list")]
    assert set(sizes[:-1]) == {2}


async def test_the_cursor_of_somebody_else_shows_nothing_more(connect: Connect) -> None:
    options = {"path": "/mcp/private"}
    rights = {"x-user": "b", "x-permissions": SECRET}
    many = await connect(NEWEST, headers=rights, **options)
    few = await connect(NEWEST, headers={"x-user": "a"}, **options)
    cursor = await first_cursor(many)
    result = (await few.request("tools/list", {"cursor": cursor})).result
    assert "secret_too" not in {each["name"] for each in result["tools"]}


# -- what a list shows ----------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_members_of_each_revision(connect: Connect, version: str) -> None:
    client = await connect(version, path="/mcp/tagged")
    titled, iconed = version >= "2025-06-18", version >= "2025-11-25"
    both = {"title", "_meta"} if titled else set()
    icons = {"icons"} if iconed else set()
    tool = (await listed(client, "tools/list"))["weather"]
    expected = {"name", "description", "inputSchema"} | both | icons
    expected |= {"annotations"} if version >= "2025-03-26" else set()
    assert tool.keys() == expected | ({"outputSchema"} if titled else set())
    resource = (await listed(client, "resources/list"))["memo"]
    expected = {"name", "description", "uri", "mimeType", "size", "annotations"}
    assert resource.keys() == expected | both | icons
    assert ("lastModified" in resource["annotations"]) == titled
    prompt = (await listed(client, "prompts/list"))["greets"]
    assert prompt.keys() == {"name", "description", "arguments"} | both | icons
    name, times = prompt["arguments"]
    assert name == {"name": "name", "description": "Whom.", "required": True}
    assert times["required"] is False


async def test_annotations_of_a_tool(connect: Connect) -> None:
    hints = {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    for version, extra in (
        ("2025-03-26", {"title": "The weather"}),
        ("2025-06-18", {}),
        (NEWEST, {}),
    ):
        client = await connect(version, path="/mcp/tagged")
        tool = (await listed(client))["weather"]
        assert tool["annotations"] == {**hints, **extra}


@pytest.mark.parametrize("version", REVISIONS)
async def test_boolean_subschemas(client: Client) -> None:
    properties = (await listed(client))["loose"]["inputSchema"]["properties"]
    if client.revision.boolean_subschemas:
        assert (properties["anything"], properties["nothing"]) == (True, False)
    else:
        assert (properties["anything"], properties["nothing"]) == ({}, {"not": {}})
    assert properties["bare"] == {}


@pytest.mark.parametrize("version", REVISIONS)
async def test_schemas_arrive_as_they_are(client: Client) -> None:
    tools = await listed(client)
    schema = tools["json_schema_2020_12_tool"]["inputSchema"]
    assert {"$schema", "$defs", "allOf", "if", "then", "else"} < schema.keys()
    assert tools["mirrors"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == (
        "Region"
    )
    assert ("outputSchema" in tools["drill_add"]) == client.revision.structured_content


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_schema_of_another_dialect_is_listed_unchanged_and_holds(
    client: Client,
) -> None:
    assert (await listed(client))["pairs"]["inputSchema"] == DRAFT_07
    assert (await client.call("pairs", pair=[1, "a"])).text == "[1, 'a']"
    # In 2020-12 `items` would be no list, and there would be no `additionalItems`.
    for pair, broken in (
        ([1, 2], ("$.pair[1]", "type")),
        ([1, "a", "b"], ("$.pair", "additionalItems")),
    ):
        assert violations(await client.call("pairs", pair=pair)) == {broken}


@pytest.mark.parametrize("version", REVISIONS)
async def test_every_schema_is_one(connect: Connect, version: str) -> None:
    """In its own dialect, or that of 2020-12."""
    for tool in (await listed(await connect(version))).values():
        check_schema(tool["inputSchema"])
        check_schema(tool.get("outputSchema", {}))


async def test_lists_depend_on_no_earlier_request(connect: Connect) -> None:
    client, other = await connect(NEWEST), await connect(NEWEST)
    before = [await listed(client, method) for method in LISTS]
    await client.call("drill_add", a=1, b=2)
    await client.call("fails", kind="exception")
    await client.request("resources/read", {"uri": "memo://fixed"})
    await client.request("prompts/get", {"name": "test_simple_prompt"})
    for each in (client, other):
        assert [await listed(each, method) for method in LISTS] == before


# -- caching --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "scope"), [("/mcp/pages", "public"), ("/mcp/private", "private")]
)
async def test_all_pages_have_one_scope(
    connect: Connect, path: str, scope: str
) -> None:
    client = await connect(NEWEST, path=path, headers={"x-user": "a"})
    first = (await client.request("tools/list")).result
    params = {"cursor": first["nextCursor"]}
    second = (await client.request("tools/list", params)).result
    for page in (first, second):
        assert (page["ttlMs"], page["cacheScope"]) == (60_000, scope)


@pytest.mark.parametrize(
    ("path", "headers", "method", "scope"),
    [
        ("/mcp/pages", {}, "tools/list", "public"),
        # Some tools of this server are not for everybody.
        ("/mcp", {}, "tools/list", "private"),
        ("/mcp/pages", {}, "resources/templates/list", "public"),
        ("/mcp/private", {"x-user": "a"}, "tools/list", "private"),
        ("/mcp/private", {"x-user": "a"}, "resources/list", "private"),
    ],
)
async def test_cache_hints(
    connect: Connect, path: str, headers: dict[str, str], method: str, scope: str
) -> None:
    client = await connect(NEWEST, path=path, headers=headers)
    result = (await client.request(method)).result
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, scope)
    older = await connect("2025-11-25", path=path, headers=headers)
    assert (await older.request(method)).result.keys() <= {LISTS[method], "nextCursor"}


# -- prompts ---------------------------------------------------------------------------


async def get(client: Client, name: Any, **params: Any) -> Outcome:
    return await client.request("prompts/get", {"name": name, **params})


def refused(found: Outcome, code: int = -32602) -> str:
    assert (found.status, found.error["code"]) == (200, code)
    message: str = found.error["message"]
    return message


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_get(client: Client) -> None:
    result = (await get(client, "greets", arguments={"name": "Ada"})).result
    content = {"type": "text", "text": "Hello, Ada! "}
    assert result["messages"] == [{"role": "user", "content": content}]
    assert result["description"] == "Greets somebody."
    assert ("resultType" in result) == client.revision.stateless
    meta = result.get("_meta", {})
    assert (f"{PREFIX}serverInfo" in meta) == client.revision.stateless


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_arguments_are_texts(client: Client) -> None:
    arguments = {"name": "Ada", "times": "2"}
    result = (await get(client, "greets", arguments=arguments)).result
    assert result["messages"][0]["content"]["text"] == "Hello, Ada! Hello, Ada! "


@pytest.mark.parametrize("version", REVISIONS)
async def test_every_block(client: Client) -> None:
    result = (await get(client, "prompt_blocks")).result
    assert result["description"] == "All kinds of blocks."
    assert [each["role"] for each in result["messages"]] == ["assistant"] * len(BLOCKS)
    kinds = [each["content"]["type"] for each in result["messages"]]
    known = client.revision.content
    assert kinds == [each.type if each.type in known else "text" for each in BLOCKS]


WRONG: Final[list[tuple[Any, dict[str, Any], str]]] = [
    *(("greets", {}, "'name'"), ("greets", {"arguments": {}}, "'name'")),
    ("greets", {"arguments": {"name": "a", "extra": "b"}}, "'extra'"),
    ("greets", {"arguments": {"name": "a", "times": "many"}}, "times"),
    ("greets", {"arguments": {"name": 7}}, "'name'"),
    ("greets", {"arguments": {"name": None}}, "'name'"),
    ("greets", {"arguments": []}, "arguments"),
    ("greets", {"arguments": None}, "'name'"),
    *((None, {}, "name"), (7, {}, "name")),
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_wrong_arguments(client: Client) -> None:
    for name, params, member in WRONG:
        assert member in refused(await get(client, name, **params))


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_unknown_and_hidden_prompts_are_the_same(
    connect: Connect, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for name in ("secret_prompt", "no_way"):
        params = {"name": name, "arguments": {"word": "x"}}
        found = await client.request("prompts/get", params, id=7)
        refused(found)
        answers.append(found.raw.replace(name.encode(), b"NAME"))
    assert answers[0] == answers[1]
    rights = {"x-user": "a", "x-permissions": SECRET}
    client = await connect(version, path="/mcp/private", headers=rights)
    found = await get(client, "secret_prompt", arguments={"word": "x"})
    assert found.result["messages"][0]["content"]["text"] == "x"


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_failures(client: Client) -> None:
    for name in ("prompt_fails", "prompt_refuses"):
        said = refused(await get(client, name), -32603)
        assert name in said
        assert "secret" not in said
    said = refused(await get(client, "hanging_prompt"), -32603)
    assert "0.03 seconds" in said
    assert "failed" in refused(await get(client, "prompt_surrogate"), -32603)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_prompt_that_asks(connect: Connect, version: str) -> None:
    client = await connect(version, capabilities={})
    found = await get(client, "prompt_asks")
    if client.revision.stateless:
        assert (found.status, found.error["code"]) == (400, -32021)
    else:
        assert "elicitation" in refused(found, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", NEWEST])
async def test_a_prompt_gets_its_answer(client: Client) -> None:
    answer = {"action": "accept", "content": {"item": "tea", "count": 2}}
    found = await client.talk(
        "prompts/get", {"name": "prompt_asks"}, lambda method, params: answer
    )
    assert found.result["messages"][0]["content"]["text"] == "2 tea"
    assert len(found.questions) == 1


async def test_a_text_prompt(stateful: Client) -> None:
    arguments = {"arg1": "{{arg2}}", "arg2": "<b>"}
    result = (
        await get(stateful, "test_prompt_with_arguments", arguments=arguments)
    ).result
    # One pass: what an argument says is not filled in again.
    assert result["messages"][0]["content"]["text"] == (
        "Prompt with arguments: arg1='{{arg2}}', arg2='<b>'"
    )
