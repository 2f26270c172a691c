"""Operations become offers of tools, and what cannot be one says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_app.conf import MIB
from mcp_app.egress.sites import Site, usable_sites
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.kinds import serving_problems
from mcp_app.kinds.http.config import read_http_config
from mcp_app.kinds.http.request import request_for
from mcp_app.kinds.openapi import offers as module
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import DocumentError, Offer, read_document
from mcp_app.protocol import schemas
from tests.apart import ROOT
from tests.clients.node import MODULES
from tests.kinds.openapi.large import OPERATIONS, as_yaml, large_document

SITE_KEY: Final = "helpdesk"


def site(**options: Any) -> Site:
    return Site(
        key=SITE_KEY,
        title="Help desk",
        scheme="https",
        host="help.example.com",
        port=443,
        prefix="/api",
        **options,
    )


def document(
    operation: Any, *, method: str = "get", path: str = "/x", **more: Any
) -> Any:
    return {"openapi": "3.1.0", "paths": {path: {method: operation}}, **more}


def offer(operation: Any, *, of: Site | None = None, **more: Any) -> Offer:
    (made,) = offers_of(document(operation, **more), of or site())
    return made


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {"type": "string"}, **more}


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def as_json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


ARRAY: Final = {"type": "array", "items": {"type": "string"}}
OBJECT: Final = {"type": "object", "properties": {"R": {}, "G": {}, "B": {}}}
STRING: Final = {"type": "string"}
FORM: Final = "application/x-www-form-urlencoded"
WHOLE: Final = {"json": "{{body}}"}
IDENTITY: Final = {"type": "integer", "readOnly": True}
TICKET: Final = {
    "type": "object",
    "properties": {"subject": STRING, "id": IDENTITY, "tags": ARRAY},
    "required": ["subject", "id"],
}


def test_an_operation() -> None:
    made = offer(
        {
            "operationId": "createTicket",
            "summary": " Create a ticket ",
            "description": "Creates one." + " x" * 1000,
            "tags": ["tickets", "", 5],
            "parameters": [
                parameter("queue", "path", description="Which queue."),
                parameter("notify", schema={"type": "boolean"}),
                parameter("X-Trace", "header"),
            ],
            "requestBody": {"required": True, "content": as_json(TICKET)},
            # Only a description: what answers has more, or less.
            "responses": {"200": {"content": as_json(TICKET)}},
        },
        method="post",
        path="/tickets/{queue}",
    )
    assert made.key == "POST /tickets/{queue}"
    assert (made.method, made.path) == ("POST", "/tickets/{queue}")
    assert (made.name, made.summary) == ("create_ticket", "Create a ticket")
    assert len(made.description) <= 1000
    assert made.tags == ("tickets",)
    assert (made.bar, made.remarks) == ("", ())
    assert made.config == {
        "site": SITE_KEY,
        "method": "POST",
        "path": "/tickets/{{queue}}",
        "query": [{"name": "notify", "value": "{{notify}}"}],
        "headers": [{"name": "X-Trace", "value": "{{X-Trace}}"}],
        "body": {"json": {"subject": "{{subject}}", "tags": "{{tags}}"}},
    }
    assert made.input_schema == {
        "type": "object",
        "properties": {
            "queue": {"description": "Which queue.", "type": "string"},
            "notify": {"type": "boolean"},
            "X-Trace": {"type": "string"},
            "subject": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["queue", "subject"],
    }
    assert Offer.from_json(made.to_json()) == made
    definition = ToolDefinition(
        name=made.name, description="d", input_schema=made.input_schema
    )
    assert SITE_KEY in usable_sites()
    assert serving_problems(definition, "http", made.config) == []


VALUES: Final[dict[str, Any]] = {
    "string": "blue",
    "array": ["blue", "black", "brown"],
    "object": {"R": 100, "G": 200, "B": 150},
}
SCHEMAS: Final[dict[str, Any]] = {"string": STRING, "array": ARRAY, "object": OBJECT}


@pytest.mark.parametrize(
    ("path", "segments", "remarks"),
    [
        ("/files/{x}", "several", 0),
        ("/files/{x}/raw", "several", 0),
        ("/{x}/raw/{y}", None, 1),
        ("/{y}/raw/{x}", "several", 0),
    ],
)
def test_values_of_several_segments(
    path: str, segments: str | None, remarks: int
) -> None:
    """As `allowReserved` says; the last value of a path can have them."""
    own = [parameter("x", "path", allowReserved=True), parameter("y", "path")]
    made = offer({"parameters": own[: path.count("{")]}, path=path)
    assert made.config.get("segments") == segments
    assert len(made.remarks) == remarks
    assert all("x " in each for each in made.remarks)


# The table "Style Examples" of the specification (3.1.1, section 4.8.12.2), and its
# defaults: form in queries, simple in paths and headers.
STYLES: Final = [
    ("query", "form", False, "string", "color=blue"),
    ("query", "form", False, "array", "color=blue,black,brown"),
    ("query", "form", False, "object", "color=R,100,G,200,B,150"),
    ("query", "form", True, "string", "color=blue"),
    ("query", "form", True, "array", "color=blue&color=black&color=brown"),
    ("query", "form", True, "object", "R=100&G=200&B=150"),
    ("query", None, None, "array", "color=blue&color=black&color=brown"),
    ("query", "spaceDelimited", False, "array", "color=blue%20black%20brown"),
    ("query", "spaceDelimited", False, "object", "color=R%20100%20G%20200%20B%20150"),
    ("query", "pipeDelimited", False, "array", "color=blue%7Cblack%7Cbrown"),
    ("query", "pipeDelimited", False, "object", "color=R%7C100%7CG%7C200%7CB%7C150"),
    ("query", "deepObject", True, "object", "color[R]=100&color[G]=200&color[B]=150"),
    ("query", "unheardOf", False, "string", None),
    ("path", "simple", False, "string", "blue"),
    ("path", "simple", False, "array", "blue,black,brown"),
    ("path", "simple", False, "object", "R,100,G,200,B,150"),
    ("path", "simple", True, "string", "blue"),
    ("path", "simple", True, "array", "blue,black,brown"),
    ("path", None, None, "object", "R,100,G,200,B,150"),
    ("path", "simple", True, "object", None),
    ("path", "label", False, "string", None),
    ("path", "matrix", True, "array", None),
    ("header", "simple", False, "string", "blue"),
    ("header", "simple", False, "array", "blue,black,brown"),
    ("header", "simple", False, "object", "R,100,G,200,B,150"),
    ("header", None, None, "array", "blue,black,brown"),
    ("header", "simple", True, "object", None),
    ("cookie", "form", True, "string", None),
]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
@pytest.mark.parametrize(("place", "style", "explode", "kind", "sent"), STYLES)
def test_styles(
    version: str,
    place: str,
    style: str | None,
    explode: bool | None,
    kind: str,
    sent: str | None,
) -> None:
    about = {"style": style, "explode": explode}
    given = {name: value for name, value in about.items() if value is not None}
    color = parameter("color", place, schema=SCHEMAS[kind], **given)
    path = "/{color}" if place == "path" else "/x"
    made = offer({"parameters": [color]}, path=path, openapi=version)
    if sent is None:
        assert made.bar or made.remarks
        assert "color" in (made.bar or made.remarks[0])
        return
    call, wrong = read_http_config(
        made.config, made.input_schema["properties"], "parameter"
    )
    assert call is not None, wrong
    request = request_for(call, {"color": VALUES[kind]}, idempotent=True)
    shown = {
        "query": request.query,
        "path": request.path[1:],
        "header": dict(request.headers).get("color"),
    }
    assert shown[place] == sent


@pytest.mark.parametrize(
    ("content", "body", "names"),
    [
        (
            as_json({"properties": {"a": {}, "b-c": {}}}),
            {"json": {"a": "{{a}}", "b-c": "{{b-c}}"}},
            ["a", "b-c"],
        ),
        (
            {"application/vnd.api+json": {"schema": ARRAY}},
            {**WHOLE, "type": "application/vnd.api+json"},
            ["body"],
        ),
        ({"application/json": {}}, WHOLE, ["body"]),
        (as_json({"oneOf": [OBJECT, STRING]}), WHOLE, ["body"]),
        (as_json({**OBJECT, "additionalProperties": {}}), WHOLE, ["body"]),
        (
            {"multipart/form-data": {}, **as_json(OBJECT)},
            {"json": {"R": "{{R}}", "G": "{{G}}", "B": "{{B}}"}},
            ["R", "G", "B"],
        ),
        (
            {
                FORM: {
                    "schema": {"properties": {"a": STRING, "b": ARRAY}},
                    "encoding": {"b": {"explode": False}},
                }
            },
            {
                "form": [
                    {"name": "a", "value": "{{a}}"},
                    {"name": "b", "value": "{{b}}", "style": "commas"},
                ]
            },
            ["a", "b"],
        ),
        (
            {"text/plain; charset=utf-8": {"schema": STRING}},
            {"text": "{{body}}", "type": "text/plain; charset=utf-8"},
            ["body"],
        ),
        (
            {"application/xml": {"schema": OBJECT}},
            {"text": "{{body}}", "type": "application/xml"},
            ["body"],
        ),
    ],
)
def test_bodies(content: Any, body: Any, names: list[str]) -> None:
    operation = {"requestBody": {"content": content}}
    made = offer(operation, method="put")
    assert made.config["body"] == body
    assert [*made.input_schema["properties"]] == names
    assert "required" not in made.input_schema


def test_a_patch_fills_in_no_default() -> None:
    """What is left out stays as it is."""
    a = {"title": "A"}
    content = as_json({"properties": {"a": {**a, "default": 1}, "b": True}})
    for method, expected in (("post", {**a, "default": 1}), ("patch", a)):
        made = offer({"requestBody": {"content": content}}, method=method)
        assert made.input_schema["properties"] == {"a": expected, "b": True}


def test_names_that_stand_twice() -> None:
    made = offer(
        {
            "parameters": [parameter("id", "path"), parameter("id"), parameter("a b")],
            "requestBody": {
                "required": True,
                "content": as_json({"properties": {"a_b": {}}}),
            },
        },
        method="post",
        path="/{id}",
    )
    properties = made.input_schema["properties"]
    assert [*properties] == ["id", "id_in_query", "a_b", "body"]
    assert (made.config["path"], made.config["body"]) == ("/{{id}}", WHOLE)


def test_parameters_of_the_path() -> None:
    item = {
        "parameters": [parameter("a", description="Of all."), parameter("b")],
        "get": {"parameters": [parameter("a", description="Of this.")]},
    }
    (made,) = offers_of({"openapi": "3.1.0", "paths": {"/x": item}}, site())
    about = made.input_schema["properties"]["a"]["description"]
    assert about == "Of this."
    assert [*made.input_schema["properties"]] == ["a", "b"]


def test_references() -> None:
    made = offer(
        {
            "parameters": [{"$ref": "#/components/parameters/P"}],
            "requestBody": {"$ref": "#/components/requestBodies/B"},
        },
        method="post",
        components={
            "parameters": {"P": parameter("p", schema=reference("S"))},
            "requestBodies": {"B": {"content": as_json(reference("N"))}},
            "schemas": {
                "S": {"enum": ["a"]},
                "N": {"type": "object", "properties": {"next": reference("N")}},
            },
        },
    )
    assert made.bar == ""
    schema = made.input_schema
    assert schema["properties"]["p"] == {"type": "string", "enum": ["a"]}
    assert schema["properties"]["next"] == {"$ref": "#/$defs/N"}
    assert schemas.compile_schema(schema).is_valid({"next": {"next": {}}})
    assert not schemas.compile_schema(schema).is_valid({"next": {"next": 5}})


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (None, {*range(48), 58, 59}),
        (["p[50]", "p_51_"], {50, 51, 58, 59}),
        ([], {58, 59}),
    ],
)
def test_more_parameters_than_a_tool_has(
    chosen: list[str] | None, left: set[int]
) -> None:
    """Those that are required, and the first, or those that somebody chose."""
    many = [parameter(f"p[{n}]", required=n > 57) for n in range(60)]
    whole = offer({"parameters": many})
    assert len(whole.input_schema["properties"]) == 60
    made = whole.with_parameters(chosen)
    assert [*made.input_schema["properties"]] == [f"p_{n}_" for n in sorted(left)]
    assert [each["name"] for each in made.config["query"]] == [
        f"p[{n}]" for n in sorted(left)
    ]
    gone = ", ".join(f"p_{n}_" for n in range(48, 58))
    remark = f"{gone} are left out: it has more than 50 parameters"
    assert made.remarks == ((remark,) if chosen is None else ())


def test_what_the_settings_set_is_left_out() -> None:
    secret = site(secret_headers={"X-Partner": "a"}, secret_query={"key": "b"})
    operation = {
        "parameters": [
            parameter("key", required=True),
            parameter("x-partner", "header", required=True),
            parameter("Accept", "header"),
            parameter("Authorization", "header", required=True),
            parameter("a"),
        ]
    }
    made = offer(operation, of=secret)
    assert made.bar == ""
    assert [*made.input_schema["properties"]] == ["a"]
    assert made.remarks == ("key is left out: the settings set it",)


def of(*given: Any, **more: Any) -> dict[str, Any]:
    return {"parameters": [parameter(*given, **more)]}


@pytest.mark.parametrize(
    ("operation", "remark"),
    [
        (of("s", "cookie"), "s is left out: it is a cookie"),
        (
            {"parameters": [{"name": "f", "in": "query", "content": {}}]},
            "f is left out: it is JSON inside the address",
        ),
        (of("Cookie", "header"), "Cookie is left out: no tool may set this header"),
        (of("z", "path"), "z is left out: the path does not have it"),
    ],
)
def test_what_is_left_out(operation: Any, remark: str) -> None:
    made = offer(operation, method="post")
    assert (made.bar, made.remarks) == ("", (remark,))


FILE: Final = {"requestBody": {"required": True, "content": {"image/png": {}}}}
STREAM: Final[Any] = {"responses": {"200": {"content": {"text/event-stream": {}}}}}


SIXTY: Final = {"parameters": [parameter(f"p{n}", required=True) for n in range(60)]}
UNTOLD: Final = {"requestBody": {"content": {FORM: {"schema": ARRAY}}}}
BARS: Final[list[tuple[Any, str]]] = [
    (FILE, "it wants a file"),
    (STREAM, "its answer is a stream"),
    ([], "it is no object"),
    (
        {"parameters": [{"$ref": "other.yaml"}]},
        "'other.yaml' leads to another document",
    ),
    ({"parameters": [{"in": "query"}]}, "has no name or no place"),
    (
        of("s", "cookie", required=True),
        "it needs s, which cannot be given: it is a cookie",
    ),
    (of("a", schema={"type": 5}), "its schema is refused: "),
    (of("a", schema={"pattern": "("}), "its schema is refused: "),
    (SIXTY, "it requires more than 50 parameters"),
    (UNTOLD, "the fields of its form are not described, or one is called as a"),
]


@pytest.mark.parametrize(
    ("path", "operation", "bar"),
    [
        *(("/x", *each) for each in BARS),
        ("/{a}", {}, "its path has {a}, which no parameter describes"),
        ("/../x", {}, "it cannot be called: A segment of the path"),
    ],
)
def test_what_cannot_be_a_tool(path: str, operation: Any, bar: str) -> None:
    given = document(operation, method="post", path=path)
    given["paths"]["/fine"] = {"get": {}}
    barred, fine = offers_of(given, site())
    assert bar in barred.bar
    assert barred.config == {}
    # It takes no other along.
    assert fine.bar == ""


OUTSIDE: Final = {"$ref": "resources/create.yml"}
TEXTS: Final = {"multipart/form-data": {"schema": OBJECT}}
PET: Final = {"type": "object", "properties": {"name": STRING}}
EMPTY: Final = {"type": "object", "properties": {}, "additionalProperties": False}
UPLOADS: Final = {"servers": [{"url": "https://uploads.example.com"}]}
CHINESE: Final = [parameter("用户", description="Who."), parameter("密码")]
BUNDLE: Final = (
    "its reference 'resources/create.yml' leads to another document: make one document"
    " of all first, for example with “redocly bundle”"
)


def with_body(content: Any, **more: Any) -> dict[str, Any]:
    return {"requestBody": {"content": content, **more}}


@pytest.mark.parametrize(
    ("item", "more", "told"),
    [
        ({"post": OUTSIDE}, {}, {"key": "POST /x", "bar": BUNDLE}),
        (OUTSIDE, {}, {"key": "ANY /x", "bar": BUNDLE}),
        (
            {"patch": with_body({**TEXTS, "image/png": {}})},
            {},
            {"bar": "it wants multipart/form-data, which cannot be sent"},
        ),
        (
            {"patch": with_body({"application/merge-patch+json": {"schema": PET}})},
            {},
            {"type": "application/merge-patch+json", "json": {"name": "{{name}}"}},
        ),
        (
            {"delete": with_body({FORM: {"schema": EMPTY}})},
            {},
            {"bar": "", "remarks": ""},
        ),
        (
            {"get": with_body(as_json(PET), required=True)},
            {},
            {"bar": "it wants the body of a GET, which is never sent"},
        ),
        (
            {"post": with_body(TEXTS, required=True)},
            {},
            {"bar": "it wants multipart/form-data, which cannot be sent"},
        ),
        (
            {"get": {}},
            {"servers": [{"url": "https://elsewhere.example/v2/"}]},
            {"remarks": "it at https://elsewhere.example/v2/, but the call goes to"},
        ),
        (
            {"get": UPLOADS},
            {"servers": [{"url": "/api"}]},
            {"remarks": "at https://uploads.example.com, but the call goes to https:"},
        ),
        (
            {"get": {"operationId": "获取用户列表", "parameters": CHINESE}},
            {},
            {
                "name": "get_x",
                "summary": "获取用户列表",
                "u7528_u6237": "“用户”: Who.",
                "u5bc6_u7801": "“密码”",
            },
        ),
    ],
)
def test_small_documents(item: Any, more: Any, told: dict[str, Any]) -> None:
    """What cannot be sent as it is written is said, and so is what a name loses."""
    given = {"openapi": "3.1.0", "paths": {"/x": item}, **more}
    (made,) = offers_of(given, site())
    properties = made.input_schema.get("properties", {})
    shown = {
        **{name: each.get("description") for name, each in properties.items()},
        **made.config.get("body", {}),
        **{name: getattr(made, name) for name in ("key", "name", "summary", "bar")},
        "remarks": "; ".join(made.remarks),
    }
    for name, text in told.items():
        assert text == shown[name] or (name == "remarks" and text in shown[name])


@pytest.mark.parametrize(
    "servers",
    [
        [],
        [{"url": "https://elsewhere.example"}],
        [{"url": "https://x.example/v2"}, {"url": "https://help.example.com/api/"}],
        [{"url": "https://{host}/v2"}],
        [{"url": "http://[x"}, 5, {}],
    ],
)
def test_servers_that_are_the_site_of_the_settings(servers: Any) -> None:
    assert offer({}, servers=servers).remarks == ()


def test_names_are_unique() -> None:
    paths = {f"/{n}": {"get": {"operationId": "same"}} for n in range(3)}
    made = offers_of({"openapi": "3.1.0", "paths": paths}, site())
    assert [each.name for each in made] == ["same", "same_2", "same_3"]


def test_odd_documents() -> None:
    paths = {"no-slash": {"get": {}}, "/a": 5, "/b": {"options": {}, "get": {}}}
    made = offers_of({"openapi": "3.1.0", "paths": paths}, site())
    assert [each.key for each in made] == ["ANY /a", "GET /b"]
    assert offers_of({"openapi": "3.1.0"}, site()) == []


def test_too_many_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPERATIONS", 2)
    paths: Any = {f"/{n}": {"get": {}} for n in range(3)}
    with pytest.raises(DocumentError, match="more than 2 operations"):
        offers_of({"openapi": "3.1.0", "paths": paths}, site())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_large_documents(tmp_path: Path, kind: str) -> None:
    """12 MiB of JSON, or 4 MiB of YAML, take a worker less than 150 MiB."""
    content = large_document(12 * MIB if kind == "json" else 3_800_000)
    path = tmp_path / "document"
    path.write_bytes(content if kind == "json" else as_yaml(content))
    command = [sys.executable, "-m", "tests.kinds.openapi.large", str(path)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    told = json.loads(ended.stdout)
    assert told["offers"] == OPERATIONS
    assert told["grown"] < 150, told


@pytest.mark.parametrize("name", ["3.1.json", "3.1.yaml"])
def test_a_document_that_nobody_here_wrote(name: str) -> None:
    path = MODULES / "@scalar" / "galaxy" / "dist" / name
    if not path.exists():
        pytest.skip("The node programs are missing: make node.")
    made = offers_of(read_document(path.read_bytes(), 2**25), site())
    offers = {each.name: each for each in made}
    assert len(offers) == 10
    barred = {name: each.bar for name, each in offers.items() if each.bar}
    what = "it wants multipart/form-data, which cannot be sent"
    assert barred == {"upload_image": what}
    assert not any(each.remarks for each in made)
    planet = offers["create_planet"]
    assert planet.config["body"]["json"]["name"] == "{{name}}"
    # The other site makes it.
    assert "id" not in planet.input_schema["properties"]
    for each in made:
        schemas.compile_schema(each.input_schema)
