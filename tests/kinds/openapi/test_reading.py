"""Documents of OpenAPI become JSON, or a sentence says why not."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import pytest

from mcp_app.conf import MIB
from mcp_app.kinds.openapi import reading
from mcp_app.kinds.openapi.reading import (
    MAX_NAME_LENGTH,
    DocumentError,
    Names,
    Offer,
    argument_name,
    pair_style_of,
    read_document,
    read_yaml,
    snake_case,
    split_path,
)
from mcp_app.protocol.yaml_scalars import plain_scalar
from tests.kinds.openapi.test_offers import offer, parameter

YAML: Final = """\
# A comment.
openapi: 3.0.3
info: {title: Shop, version: 1.0}
paths:
  /orders/{id}:
    get: &get
      summary: "yes"
      parameters: []
      responses:
        200:
          description: >-
            Folded
            text
    post: *get
    x-date: 2026-11-25
    x-no: no
"""
AS_JSON: Final = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": 1.0},
    "paths": {
        "/orders/{id}": {
            "get": {
                "summary": "yes",
                "parameters": [],
                "responses": {"200": {"description": "Folded text"}},
            },
            "post": {
                "summary": "yes",
                "parameters": [],
                "responses": {"200": {"description": "Folded text"}},
            },
            "x-date": "2026-11-25",
            "x-no": "no",
        }
    },
}


def document(content: str | bytes, most: int = MIB) -> Any:
    return read_document(
        content.encode() if isinstance(content, str) else content, most
    )


def test_documents() -> None:
    assert document(YAML) == AS_JSON
    assert document(json.dumps(AS_JSON)) == AS_JSON
    assert document(b"\xef\xbb\xbf " + json.dumps(AS_JSON).encode()) == AS_JSON
    # YAML that looks like JSON at first.
    assert document("{openapi: '3.1.0', paths: {}}") == {
        "openapi": "3.1.0",
        "paths": {},
    }


def test_versions() -> None:
    for version in ("3.0.0", "3.0.4-rc1", "3.1.1", "3.2.0"):
        given = document(json.dumps({"openapi": version, "paths": {}}))
        assert given["openapi"] == version


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            '{"swagger": "2.0"}',
            "This is Swagger 2.0. Export it as OpenAPI 3.0 or newer.",
        ),
        ("swagger: '2.0'", "This is Swagger 2.0."),
        ("{}", "“openapi” is None."),
        ('{"openapi": 3.0}', "“openapi” is 3.0."),
        ('{"openapi": "4.0.0"}', "“openapi” is '4.0.0'."),
        ('{"openapi": "3.0.0", "paths": []}', "The “paths” of the document are no"),
        ("[]", "it is no object"),
        ("", "it is no object"),
        ("hello", "it is no object"),
        ('{"openapi": "3.0.0"', "The document is no JSON that can be read: "),
        ("[1", "The document is no JSON that can be read: "),
        ("a: [", "The document is no YAML that can be read: "),
        ("a: b: c", "The document is no YAML that can be read: "),
        (b"\xff\xfe\xfa", "The document is no YAML that can be read: "),
        ("? [a]\n: b", "The document has a key that is no text."),
        ("? {a: b}\n: c", "The document has a key that is no text."),
        ("a: *b", "The document has an alias *b of nothing, or of itself."),
        ("&a [*a]", "an alias *a of nothing, or of itself."),
        ("[" * 100_000, "The document is no JSON"),
        ("a: " + "[" * 100_000, "nested deeper than 64 levels"),
        ("- " * 100_000, "nested deeper than 64 levels"),
    ],
)
def test_what_is_no_document(content: str | bytes, sentence: str) -> None:
    with pytest.raises(DocumentError) as caught:
        document(content)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_billion_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for each in range(1, 10):
        row = ", ".join([f"*a{each - 1}"] * 10)
        lines.append(f"a{each}: &a{each} [{row}]")
    with pytest.raises(DocumentError, match="aliases counted each time"):
        document("\n".join(lines))


def test_large_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps(AS_JSON)
    with pytest.raises(DocumentError, match="are allowed"):
        document(content, most=10)
    monkeypatch.setattr(reading, "MOST_YAML", 10)
    with pytest.raises(DocumentError, match="Give it as JSON"):
        document(YAML)
    assert document(content) == AS_JSON


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert document(json.dumps(AS_JSON)) == AS_JSON
    with pytest.raises(DocumentError, match=r'pip install "django-mcp-app\[openapi\]"'):
        document(YAML)


def test_scalars() -> None:
    values: dict[str, object] = {
        **{"": None, "~": None, "null": None, "true": True, "False": False},
        **{"12": 12, "-7": -7, "0o14": 12, "0xC": 12, "014": 14},
        **{"1.5": 1.5, ".5": 0.5, "1e3": 1000.0},
    }
    texts = ("yes", "on", "1_000", "1:30", "1e999", ".inf", "2026-11-25", "9" * 5000)
    for text, value in (*values.items(), *zip(texts, texts, strict=True)):
        given = plain_scalar(text)
        assert (given, type(given)) == (value, type(value))


def test_texts() -> None:
    values = {
        **{"'12'": "12", '"true"': "true", "!!str 12": "12", "|\n  12": "12"},
        "{200: {'a': 1}}": {"200": {"a": 1}},
        "{null: 1, '': 2}": {"null": 1, "": 2},
        "a: 1\n---\nb: 2": {"a": 1},
    }
    assert {text: read_yaml(text.encode()) for text in values} == values


# -- offer -----------------------------------------------------------------------------


def test_offers_in_rows() -> None:
    for made in (
        Offer(key="GET /a b", name="a", tags=("x", "y"), remarks=("r",)),
        Offer(key="POST /", name="", bar="it wants a file"),
        Offer(key="PUT /a", name="a", input_schema={"type": "object"}, config={"a": 1}),
    ):
        assert Offer.from_json(made.to_json()) == made
    made = Offer(key="GET /a b", name="a")
    assert (made.method, made.path) == ("GET", "/a b")
    assert made.to_json() == {"key": "GET /a b", "name": "a", "kind": "http"}


# -- names -----------------------------------------------------------------------------


def test_names_of_tools() -> None:
    names = {
        **{"listPets": "list_pets", "HTTPServerList": "http_server_list"},
        **{"get /a/{b}": "get_a_b", "a--b": "a_b", "été": "t", "x" * 100: "x" * 64},
        "A" * 80_000: "a" * MAX_NAME_LENGTH,
    }
    assert {text: snake_case(text) for text in names} == names


def test_names_of_arguments() -> None:
    names = {"a b": "a_b", "é": "ue9", "1a": "_1a", "X-A": "X-A"}
    assert {text: argument_name(text) for text in names} == names


def test_each_name_once() -> None:
    names = Names({"b", "b_2"})
    assert [names.reserve_name("a") for _ in range(3)] == ["a", "a_2", "a_3"]
    assert [
        names.reserve_name("b"),
        names.reserve_name("b_3"),
        names.reserve_name("b"),
    ] == ["b_3", "b_3_2", "b_4"]


def test_many_names_that_begin_alike() -> None:
    names = Names()
    given = [
        names.reserve_name("a" * 62 + end)
        for end in ("bb", "cc")
        for _ in range(20_000)
    ]
    assert len({*given}) == 40_000
    assert {len(each) for each in given} == {MAX_NAME_LENGTH}
    assert given[-1] == "a" * 58 + "_39999"


# -- addresses -------------------------------------------------------------------------


def test_split_path() -> None:
    assert split_path("/a/{b}") == ("/a/{b}", [])
    assert split_path("/a?b=1&c=") == ("/a", [("b", "1"), ("c", "")])
    assert split_path("/#X-Amz-Target=Certificates.Add") == ("/", [])
    assert split_path("/a?b=%20#c?d=1") == ("/a", [("b", " ")])


def test_an_operation_with_more_behind_its_path() -> None:
    added = offer({"operationId": "add"}, path="/rows?do=add&id=7#one")
    assert (added.bar, added.config["path"]) == ("", "/rows")
    assert added.config["query"] == [
        {"name": "do", "value": "add"},
        {"name": "id", "value": "7"},
    ]
    own = offer({"parameters": [parameter("id")]}, path="/rows?do=add&id=7")
    assert own.config["query"] == [
        {"name": "do", "value": "add"},
        {"name": "id", "value": "{{id}}"},
    ]
    bar = offer({}, path="/rows?term={term}").bar
    assert bar == "“{term}” of its path is no parameter"


def test_a_style_that_is_no_text() -> None:
    assert pair_style_of({"style": []}) is None
