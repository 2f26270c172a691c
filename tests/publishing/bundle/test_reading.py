"""Files that somebody sent: strictly read, each problem with its place."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.test import override_settings

from mcp_app.models.fields import digest
from mcp_app.models.versions import hash_of
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused, reading
from tests.publishing.bundle.content import as_bytes

HEAD: dict[str, Any] = {"format": "django-mcp-app bundle", "version": 2}
PICTURE = b"\x89PNG"


def file(**lists: Any) -> dict[str, Any]:
    return {**HEAD, **lists}


def a_tool(**members: Any) -> dict[str, Any]:
    return {"name": "a", "working": {"name": "a"}, **members}


def problems(value: object) -> list[str]:
    body = value if isinstance(value, bytes) else as_bytes(value)
    with pytest.raises(BundleRefused) as refused:
        bundle.read_bundle(body)
    return list(refused.value.problems)


def working(**content: Any) -> dict[str, Any]:
    return file(tools=[{"name": "a", "working": {"name": "a", **content}}])


def published(**members: Any) -> dict[str, Any]:
    content = members.pop("content", {"name": "a"})
    version = {"number": 1, "hash": hash_of(content), "content": content}
    return file(tools=[{"name": "a", "published": {**version, **members}}])


def blob(**members: Any) -> dict[str, Any]:
    return {
        "digest": digest(PICTURE),
        "media_type": "image/png",
        "content": base64.b64encode(PICTURE).decode(),
        **members,
    }


def with_upload(*blobs: Any, name: str = digest(PICTURE)) -> dict[str, Any]:
    resource = {"name": "a", "uri": "shop://a", "config": {"upload": name}}
    entry = {"uri": "shop://a", "working": resource}
    return file(resources=[entry], blobs=list(blobs))


def a_server(**members: Any) -> dict[str, Any]:
    return file(servers=[{"slug": "a", "access": [], "page_size": 1, **members}])


def choice(chosen: Any, selection: str = "chosen") -> dict[str, Any]:
    return a_server(working={"selection": selection, "chosen": chosen})


def test_an_empty_bundle_is_one() -> None:
    read = bundle.read_bundle(as_bytes(HEAD))
    assert (read.entries, dict(read.uploads)) == ((), {})
    assert read.fingerprint == digest(as_bytes(HEAD))[:8]


def test_what_is_read() -> None:
    value = with_upload(blob())
    value["tools"] = published(note="Why", author="maria")["tools"]
    asked = {"permission": "shop.view", "groups": "a\nb", "rule": ""}
    value["servers"] = a_server(demands=asked)["servers"]
    read = bundle.read_bundle(as_bytes(value))
    entries = {entry.place: entry for entry in read.entries}
    tool, resource = entries["tools[0]"], entries["resources[0]"]
    assert entries["servers[0]"].demands == asked
    assert (str(tool), tool.place) == ("tool “a”", "tools[0]")
    assert tool.working == {"name": "a"}
    assert tool.published is not None
    assert (tool.published.note, tool.published.author) == ("Why", "maria")
    assert (resource.key, resource.source) == ("shop://a", "here")
    assert read.uploads[digest(PICTURE)].content == PICTURE


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The file is not complete: it ends in line 1."),
        (b'{\n"format": "x', "The file is not complete: it ends in line 2."),
        (b'{"format": [\n1,\n', "The file is not complete: it ends in line 3."),
        (b"\n\nno", "Line 3: this is not JSON."),
        (b"\xff\xfe", "The file is not UTF-8 at byte 0."),
        (b'{"a": 1, "a": 2}', "An object has the key 'a' twice."),
        (b'{"a": "\\ud800"}', "A string has half of a surrogate pair."),
        (b'{"a": NaN}', "NaN is not a JSON number."),
        (b"[" * 100_000, "The file nests arrays and objects more than 72"),
        (b"[]", "This is not a bundle: “format” must be “django-mcp-app bundle”."),
        (as_bytes({**HEAD, "format": "x"}), "This is not a bundle"),
        (as_bytes({**HEAD, "version": 0}), "version: This must be a whole number"),
        (as_bytes({**HEAD, "version": True}), "version: This must be a whole number"),
        (
            as_bytes({**HEAD, "version": 1}),
            "The file was made by an older version. Export it again there.",
        ),
        (
            as_bytes({**HEAD, "version": 3}),
            "The file was made by a newer version (3; this site reads up to 2).",
        ),
    ],
)
def test_what_is_no_bundle(body: bytes, said: str) -> None:
    [problem] = problems(body)
    assert problem.startswith(said)


def test_documents_one_after_another_are_one_bundle() -> None:
    prompt = {"name": "b", "working": {"name": "b", "title": '"}{\\'}}
    body = as_bytes(file(prompts=[prompt])) + as_bytes(working()) + b"\n \n"
    places = [each.place for each in bundle.read_bundle(body).entries]
    assert places == ["document 1: prompts[0]", "document 2: tools[0]"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"format": "x\n}\n', "Line 1: this is not JSON."),
        (b"x" * 5_000_000, "Line 1: this is not JSON."),
        (as_bytes(working(title="\0")), "tools[0].working: "),
        (as_bytes(file(more=1)), "more: No member of this name is allowed here."),
        (as_bytes(working()), "tools[0]: The file has “a” already at a.json: tools[0]"),
        (as_bytes(file(blobs=[blob(), blob()])), "blobs[1]: The file has this digest"),
    ],
)
def test_one_of_several_files_is_wrong(body: bytes, said: str) -> None:
    with pytest.raises(BundleRefused) as refused:
        bundle.read_files({"a.json": as_bytes(working()), "b.json": body})
    assert refused.value.problems[0].startswith(f"b.json: {said}")


def test_a_file_that_is_too_large() -> None:
    body = as_bytes(HEAD) + b" " * bundle.MOST_BYTES
    [problem] = problems(body)
    assert problem.startswith(f"The file has {len(body)} bytes; the limit is 67108864")


def test_a_file_with_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ReadLimits(depth=72, nodes=50)
    monkeypatch.setattr(reading, "LIMITS", limits)
    many = [as_bytes(file(tools=[0] * 100)), as_bytes(["a"] * 150), b'"' * 300]
    for body in many:
        assert problems(body) == ["The file has more than 50 values."]


UNKNOWN = "No member of this name is allowed here."
WHOLE = "This must be a whole number"
NAME = "This must be a name without blanks and commas."
MISSING = "“name” is missing."
TWO = [published()["tools"][0], {**published()["tools"][0], **a_tool(), "name": "b"}]
OF_COLUMNS: list[tuple[str, Any, str]] = [
    *(("title", each, "This must be a text.") for each in (5, None)),
    *(("name", each, "This must be a text without NUL,") for each in (5, "")),
    ("description", [], "This must be a text."),
    *(("position", each, WHOLE) for each in (True, 1.0, 1.5)),
    *(
        ("timeout", each, "This must be a number")
        for each in ("5", True, 10**400, -(10**400))
    ),
    ("read_only", 1, "This must be true or false."),
    ("config", [], "This must be an object."),
    ("icons", {}, "This must be a list."),
    *((name, {}, UNKNOWN) for name in ("enabled", "chosen", "id")),
]
SHAPES: list[tuple[Any, ...]] = [
    (file(secrets=[]), f"secrets: {UNKNOWN}"),
    (file(tools={}), "tools: This must be a list."),
    (file(tools=[1]), "tools[0]: This must be an object."),
    (file(tools=[{}]), f"tools[0]: {MISSING}", "tools[0]: “working” is missing."),
    (file(tools=[a_tool(name="")]), "tools[0].name: This must be a text"),
    (file(tools=[a_tool(name="a\0")]), "tools[0].name: This must be a text"),
    (file(tools=[a_tool(id=7)]), f"tools[0].id: {UNKNOWN}"),
    (file(tools=[a_tool(**{"a\u202eb": 7})]), f"tools[0].a⟦U+202E⟧b: {UNKNOWN}"),
    (file(tools=[a_tool(source="http")]), "tools[0].source: This must be “here” or"),
    (file(tools=[a_tool(working=1)]), "tools[0].working: This must be an object."),
    (file(tools=[{"name": "a"}]), "tools[0]: “working” is missing."),
    (file(tools=[a_tool(working={})]), f"tools[0].working: {MISSING}"),
    (file(tools=[a_tool(demands={})]), f"tools[0].demands: {UNKNOWN}"),
    (
        file(tools=[{"name": "a", "source": "code", "working": {"config": {}}}]),
        f"tools[0].working.config: {UNKNOWN}",
    ),
    (
        file(resources=[{"uri": "b:a", "name": "a", "published": {}}]),
        *(f"resources[0].published: “{each}” is" for each in ("number", "hash")),
        "resources[0].published: “content” is missing.",
        f"resources[0].name: {UNKNOWN}",
    ),
    (file(resources=[{"uri": "b:a", "source": "code"}]), f"resources[0]: {MISSING}"),
    *(
        (working(**{name: value}), f"tools[0].working.{name}: {said}")
        for name, value, said in OF_COLUMNS
    ),
    *(
        (published(**{name: value}), f"tools[0].published.{name}: {said}")
        for name, value, said in [
            *(("number", each, WHOLE) for each in (0, 1.0, -1.5, True)),
            *(
                ("hash", each, "This must be a SHA-256: 64 lower-case")
                for each in ("A" * 64, "0" * 63, "0" * 64 + "\n", 5)
            ),
            *(
                ("created", each, "This must be a time (ISO 8601).")
                for each in ("yesterday", 5, "2026-13-01T00:00:00")
            ),
            ("note", "a\0", "This must be a text without NUL."),
            ("email", "x", UNKNOWN),
        ]
    ),
    (published(content={"title": "A"}), f"tools[0].published.content: {MISSING}"),
    (with_upload(blob(digest="x")), "blobs[0].digest: This must be a SHA-256"),
    (a_server(access="a"), "servers[0].access: This must be a list."),
    *(
        (a_server(access=["ok", each]), f"servers[0].access[1]: {NAME}")
        for each in ("", "a b", "c,d", "a\0", "a\x1cb", 1)
    ),
    (a_server(page_size=0), f"servers[0].page_size: {WHOLE} above 0."),
    (a_server(demands=[]), "servers[0].demands: This must be an object."),
    (a_server(demands={"rules": ""}), f"servers[0].demands.rules: {UNKNOWN}"),
    *(
        (a_server(demands={"rule": each}), "servers[0].demands.rule: This must be a te")
        for each in (None, "a\0")
    ),
    (a_server(source="here"), f"servers[0].source: {UNKNOWN}"),
    (
        file(servers=[{"slug": "a"}]),
        "servers[0]: “access” is missing.",
        "servers[0]: “page_size” is missing.",
    ),
    *(
        (choice(chosen, selection), f"servers[0].working.chosen{said}")
        for chosen, selection, said in [
            ({}, "all", ": This is allowed only with the selection “chosen”."),
            ([], "chosen", ": This must be an object."),
            ({"tools": "a"}, "chosen", ".tools: This must be a list."),
            ({"tools": [1]}, "chosen", ".tools[0]: This must be a text."),
            ({"tools": ["a", "a"]}, "chosen", ".tools: This list has an entry twice."),
            ({"users": []}, "chosen", f".users: {UNKNOWN}"),
        ]
    ),
]
VALUES: list[tuple[Any, ...]] = [
    (file(tools=[a_tool()] * 2), "tools[1]: The file has “a” already at tools[0]."),
    (
        file(tools=[{"name": "b", "working": {"name": "a"}}]),
        "tools[0]: The key “b” differs from the name in the working copy.",
    ),
    (
        file(tools=TWO),
        "tools[1]: The key “b” differs from the name in the working copy.",
        "tools[1]: The file has “a” already at tools[0].",
    ),
    (
        working(config={"text": "a\0b"}),
        "tools[0].working: The text has the character NUL (U+0000); remove it.",
    ),
    (published(hash="0" * 64), "tools[0].published: The hash does not match the"),
    (with_upload(), "resources[0]: This entry uses the upload “0f4636c7"),
    (
        with_upload(blob(), name="nothing"),
        "resources[0]: This entry uses the upload “nothing”, which is missing in the",
        "Nothing uses the upload",
    ),
    (file(blobs=[blob()]), "Nothing uses the upload “0f4636c7"),
    (with_upload(blob(), blob()), "blobs[1]: The file has this digest twice."),
    (with_upload(blob(content="AAAA")), "blobs[0]: The digest does not match the"),
    (with_upload(blob(content="é")), "blobs[0]: The content is not base64."),
    (with_upload(blob(media_type="x")), "blobs[0]: “x” is not a media type"),
    (
        with_upload(blob(media_type=f'a/b;c="{"d" * 300}"')),
        'blobs[0]: “a/b;c="' + "d" * 33 + "…” has 308 characters; a media type",
    ),
]


def test_each_problem_is_named_with_its_place() -> None:
    for value, *said in SHAPES + VALUES:
        found = problems(value)
        assert len(found) == len(said), found
        assert all(map(str.startswith, found, said)), (found, said)


def test_a_content_as_deep_as_a_row_may_have_it_and_deeper() -> None:
    def nested(depth: int) -> dict[str, Any]:
        config: Any = {}
        for _ in range(depth):
            config = {"a": config}
        return working(config=config)

    assert bundle.read_bundle(as_bytes(nested(60))).entries
    [problem] = problems(nested(64))
    assert problem.startswith(
        "tools[0].working: The text nests arrays and objects more"
    )
    [problem] = problems(nested(200))
    assert problem.startswith("The file nests arrays and objects more")


@override_settings(MCP={"LIMITS": {"body": 3}})
def test_an_upload_that_no_form_would_take() -> None:
    assert problems(with_upload(blob())) == [
        "blobs[0]: The content has 4 bytes; the limit is 3."
    ]


def test_not_all_of_many_problems_are_named() -> None:
    assert len(problems(file(tools=[1] * 1_000))) == 50
