"""Skills, as clients of the whole endpoint see them (SEP-2640)."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from typing import Any, Final

import pytest
from pytest_django import DjangoDbBlocker

from mcp_app.interface.server import READ_SKILL
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.frontmatter import read_frontmatter
from mcp_app.protocol.skills import EXTENSION
from tests.asgi_client import Client
from tests.audit.reading import kept
from tests.drill.skills import FILES, ROOT, SECRET, SLUG, write_skills
from tests.published import start, stopped
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

BOTH: Final = pytest.mark.parametrize("version", [STATEFUL, STATELESS])
MAY: Final = {"x-permissions": "shop.salaries"}
METHODS: Final = ("skills/list", "skills/get", "resources/directory/read")

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
def rows(
    served_rows: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[Any, Any, Any]]:
    with django_db_blocker.unblock():
        server, refunds, salaries = write_skills("header")
        yield server, refunds, salaries
        for row in (server, refunds, salaries):
            row.delete()


@pytest.fixture
def ask(rows: Any, connect: Connect) -> Ask:
    async def ask(
        method: str, version: str = STATELESS, headers: Any = None, **params: Any
    ) -> Any:
        given = {"x-user": "ana", **(headers or {})}
        client = await connect(version, path=f"/mcp/{SLUG}", headers=given)
        if method == "hello":
            new = Client(client.application, version, path=client.path, headers=given)
            stateless = new.revision.stateless
            hello = new.message("server/discover") if stateless else new.initialize()
            return await new.sent(hello)
        return await client.request(method, params)

    return ask


@BOTH
async def test_a_host_verifies_every_file_of_a_skill(ask: Ask, version: str) -> None:
    listed = (await ask("skills/list", version)).result
    (skill,) = listed["skills"]
    uri = f"{ROOT}/SKILL.md"
    got = (await ask("skills/get", version, uri=uri)).result
    assert got["skill"] == skill
    hints = {each: result.get(each) for result in (listed, got) for each in result}
    assert ("ttlMs" in hints, hints.get("cacheScope")) == (
        (True, "private") if version == STATELESS else (False, None)
    )
    read = {}
    for each in skill["resources"]:
        result = (await ask("resources/read", version, uri=each["uri"])).result
        (contents,) = result["contents"]
        is_text = "text" in contents
        raw = contents["text"].encode() if is_text else b64decode(contents["blob"])
        digest = f"sha256:{sha256(raw).hexdigest()}"
        found = contents["uri"], digest, len(raw)
        assert found == (each["uri"], each["digest"], each["size"])
        read[each["uri"]] = raw, contents["mimeType"]
    assert read[uri][1] == "text/markdown"
    assert read_frontmatter(read.pop(uri)[0]) == skill["frontmatter"]
    assert skill["frontmatter"]["metadata"]["version"] == "2026-01-01"
    stamp = f"{ROOT}/assets/stamp%20one.png"
    assert read[stamp] == (FILES["assets/stamp one.png"], "image/png")
    assert sorted(raw for raw, _ in read.values()) == sorted(FILES.values())


@BOTH
async def test_folders_have_their_direct_children(ask: Ask, version: str) -> None:
    async def children(uri: str) -> dict[str, Any]:
        answer = (await ask("resources/directory/read", version, uri=uri)).result
        assert ("ttlMs" in answer) is (version == STATELESS)
        return {each["uri"]: each for each in answer["resources"]}

    root = await children(ROOT)
    (resource,) = (await ask("resources/list", version)).result["resources"]
    assert root.pop(f"{ROOT}/SKILL.md") == resource
    assert (resource["name"], resource["mimeType"]) == ("refunds", "text/markdown")
    folders = {each["uri"]: (each["name"], each["mimeType"]) for each in root.values()}
    assert folders == {
        f"{ROOT}/{name}": (name, "inode/directory") for name in ("assets", "references")
    }
    references = await children(f"{ROOT}/references")
    kinds = {each["name"]: each["mimeType"] for each in references.values()}
    assert kinds == {"RULES.md": "text/markdown", "old": "inode/directory"}


@BOTH
async def test_a_skill_for_few_is_unknown_to_others(
    ask: Ask, rows: Any, process: Process, version: str
) -> None:
    """What is hidden, stopped or gone, and what never was, are one answer."""
    addresses = [
        *((each, f"{SECRET}/SKILL.md") for each in ("skills/get", "resources/read")),
        ("resources/read", f"{SECRET}/references/RULES.md"),
        *((METHODS[2], SECRET), (METHODS[2], f"{SECRET}/references")),
    ]

    async def answers(name: str, headers: Any) -> list[str]:
        found = [
            (await ask(method, version, headers, uri=uri.replace("salaries", name)))
            for method, uri in addresses
        ]
        errors = [json.dumps(each.answer.get("error")) for each in found]
        return [each.replace(name, "…") for each in errors]

    async def change(work: Callable[..., Any], *arguments: Any) -> None:
        await writer.run(work, *arguments)
        await process.gate.wait_for_check()

    async def names(headers: Any) -> list[str]:
        skills = (await ask("skills/list", version, headers)).result["skills"]
        return [each["frontmatter"]["name"] for each in skills]

    async def instructions(headers: Any) -> str:
        return str((await ask("hello", version, headers)).result["instructions"])

    unknown = await answers("nothing", MAY)
    assert "null" not in unknown
    assert await names(MAY) == ["refunds", "salaries"]
    assert await answers("salaries", MAY) == ["null"] * 5
    line = f"{SECRET}/SKILL.md: When somebody asks what people earn."
    assert (await instructions(MAY)).split("\n")[-1] == line
    # Neither without the right, nor with a token for something else.
    for headers in ({}, {**MAY, "x-tags": "other"}):
        assert await answers("salaries", headers) == unknown
        seen = f"{await names(headers)} {await instructions(headers)}"
        assert "salaries" not in seen
    assert (await instructions({"x-tags": "other"})) == "Be kind."
    await change(stopped, rows[2])
    after = await answers("salaries", MAY)
    assert [each for each in after if "switched off" in each] == after[1:3]
    assert [after[0], *after[3:]] == [unknown[0], *unknown[3:]]
    await change(start, rows[2])
    assert await names(MAY) == ["refunds", "salaries"]
    await change(rows[2].rows().unpublish, [rows[2]])
    assert (await answers("salaries", MAY), await names(MAY)) == (unknown, ["refunds"])


async def test_errors(ask: Ask) -> None:
    root = {"uri": ROOT}
    for method, params in (
        *(("skills/get", {}), ("skills/get", root), ("skills/list", {"cursor": "x"})),
        *((METHODS[2], {}), (METHODS[2], {"uri": f"{ROOT}/SKILL.md"})),
        *((METHODS[2], {"uri": "skill://shop"}), (METHODS[2], {**root, "cursor": "x"})),
    ):
        assert (await ask(method, **params)).error["code"] == -32602, (method, params)


async def test_which_clients_are_told_of_skills(ask: Ask, connect: Connect) -> None:
    """Older revisions have no methods, nor have other servers; all get resources."""
    for version in ("2025-06-18", STATEFUL, STATELESS):
        hello = (await ask("hello", version)).result
        extensions = hello["capabilities"].get("extensions", {})
        told = {} if version == "2025-06-18" else {"directoryRead": True}
        assert extensions.get(EXTENSION, {}) == told
        assert f"{ROOT}/SKILL.md: When" in hello["instructions"]
        other = await connect(version, path="/mcp/tagged")
        for method in METHODS:
            codes = [-32601] if version == "2025-06-18" else [-32602, None]
            answer = (await ask(method, version, uri="x:y")).answer
            assert answer.get("error", {}).get("code") in codes
            refused = (await other.request(method, {"uri": "x:y"})).error
            assert refused["code"] == -32601


@BOTH
async def test_a_client_that_knows_no_skills_reads_them_with_a_tool(
    ask: Ask, process: Process, version: str
) -> None:
    async def read(headers: Any = None, **arguments: Any) -> Any:
        params = {"name": READ_SKILL, "arguments": arguments}
        return (await ask("tools/call", version, headers, **params)).result

    uri, file = f"{ROOT}/SKILL.md", "references/RULES.md"
    (listed,) = (await read())["structuredContent"]["skills"]
    assert listed == {"skill": uri, "description": "When a customer wants money back."}
    text, names = [each["text"] for each in (await read(skill=uri))["content"]]
    assert text.startswith("---\nname: ")
    assert names.endswith(": " + ", ".join(["SKILL.md", *sorted(FILES)]))
    rules = (await read(skill=uri, file=file))["content"][0]["text"]
    assert rules.encode() == FILES[file]
    stamp = (await read(skill=uri, file="assets/stamp one.png"))["content"][0]
    assert stamp["resource"]["mimeType"] == "image/png"
    secret = f"{SECRET}/SKILL.md"
    said = [await read(skill=secret), await read(skill=secret.replace("s/", "x/"))]
    assert [each["isError"] for each in said] == [True, True]
    assert json.dumps(said[0]).replace("s/", "x/") == json.dumps(said[1])
    assert "isError" not in await read(MAY, skill=secret)
    calls = [(each.kind, each.name) for each in await kept(process)]
    assert calls.count(("resource", uri)) == 3
    assert calls.count(("resource", secret)) == 1


async def test_the_tool_goes_with_the_last_skill(
    ask: Ask, rows: Any, process: Process
) -> None:
    assert "error" not in (await ask("tools/call", name=READ_SKILL)).answer
    for row in rows[1:]:
        await writer.run(row.rows().unpublish, [row])
    await process.gate.wait_for_check()
    refused = (await ask("tools/call", name=READ_SKILL)).error
    assert refused == {"code": -32602, "message": f"Unknown tool: {READ_SKILL}"}


async def test_the_tool_is_there_for_who_sees_a_skill(ask: Ask) -> None:
    tools = (await ask("tools/list")).result["tools"]
    assert [each["name"] for each in tools] == [READ_SKILL]
    assert (await ask("tools/list", headers={"x-tags": "other"})).result["tools"] == []
