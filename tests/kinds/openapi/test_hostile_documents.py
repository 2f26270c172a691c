"""Documents that somebody made to do harm: each ends with offers, bars or a sentence.

Each of these took minutes, gigabytes or another error once.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.conf import MIB
from mcp_app.kinds.openapi import offers as module
from mcp_app.kinds.openapi import schemas as schemas_module
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import (
    MAX_NAME_LENGTH,
    DocumentError,
    Offer,
    read_document,
)
from tests.kinds.openapi.test_offers import (
    as_json,
    document,
    offer,
    parameter,
    reference,
    site,
)


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def bar_of(operation: Any, **more: Any) -> str:
    """Return the bar of an operation, which takes no other along."""
    given = document(operation, **{"method": "post", **more})
    given["paths"]["/fine"] = {"get": {}}
    first, fine = offers_of(given, site())
    assert fine.bar == ""
    return first.bar


# -- time and memory -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["é", "p"])
def test_many_parameters(name: str) -> None:
    names = [name * (each + 1) for each in range(4_000)]
    bar = bar_of({"parameters": [parameter(each) for each in names]})
    assert bar == "it has more than 500 parameters"


def test_names_of_arguments_do_not_grow() -> None:
    names = [chr(0x4E00 + each) for each in range(50)]
    made = offer({"parameters": [parameter(each) for each in names]})
    assert [*made.input_schema["properties"]] == [f"u{ord(each):x}" for each in names]


def test_a_long_operation_id() -> None:
    assert offer({"operationId": "A" * 80_000}).name == "a" * MAX_NAME_LENGTH


@pytest.mark.parametrize("path", ["/" + "{" * 80_000, "/" + "a" * 500])
def test_long_paths(path: str) -> None:
    assert bar_of({}, path=path) == "its path is longer than 495 characters"


def test_operations_that_differ_late() -> None:
    paths: Any = {f"/{'a' * 480}{n}": {"get": {}} for n in range(2_000)}
    made = offers_of({"openapi": "3.1.0", "paths": paths}, site())
    assert len({each.name for each in made}) == 2_000
    assert made[-1].name.endswith("a_2000")


def with_one_schema(schema: Any, count: int, **operation: Any) -> dict[str, Any]:
    body = {"requestBody": {"content": as_json(reference("S"))}, **operation}
    paths = {f"/{n}": {"post": body} for n in range(count)}
    components = {"schemas": {"S": schema}}
    return {"openapi": "3.1.0", "paths": paths, "components": components}


LONG: Any = {"enum": ["a" * 1000] * 100}


def test_one_schema_in_all_operations() -> None:
    # The second is written before it is refused.
    for more in ({}, {"x": {"type": 5}}):
        properties = {"next": reference("S"), "long": LONG, **more}
        given = with_one_schema({"properties": properties}, 30)
        with pytest.raises(DocumentError, match="take more than 2 MiB"):
            offers_of(given, site(), 2 * MIB)
        assert len(offers_of(given, site())) == 30


def test_one_value_that_is_put_in_line_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas_module, "MOST_WRITTEN", MIB)
    names = [f"p{n}" for n in range(140)]
    schema = {"properties": dict.fromkeys(names, reference("D"))}
    components = {"schemas": {"D": {"default": [1] * 15_000}}}
    operation = {"requestBody": {"content": as_json(schema)}}
    given = document(operation, method="post", components=components)
    with pytest.raises(DocumentError, match="take more than 1 MiB"):
        offers_of(given, site())


def test_one_reference_in_many_spellings() -> None:
    translator = schemas_module.Translator({"a": {"enum": ["x" * 40_000]}}, old=False)
    made = [translator.translate({"$ref": each}) for each in ("#/a", "#/%61")]
    assert made == [{"$ref": "#/$defs/a"}] * 2


def test_many_definitions_of_one_name() -> None:
    circles = {f"s{n}": {"x": {"items": {"$ref": f"#/s{n}/x"}}} for n in range(4_000)}
    translator = schemas_module.Translator(circles, old=False)
    schema = {"allOf": [{"$ref": f"#/s{n}/x"} for n in range(4_000)]}
    made = translator.translate(schema)
    assert made["allOf"][-1] == {"$ref": "#/$defs/x_4000"}


@pytest.mark.parametrize(
    "part",
    [
        {"tags": ["x"] * 100},
        {"parameters": [{"name": f"p{n}", "in": "path"} for n in range(100)]},
        {"requestBody": {"content": {f"image/{n}": {} for n in range(100)}}},
        {"responses": {f"2{n}": {} for n in range(100)}},
        {"responses": {"200": {"content": {f"image/{n}": {} for n in range(100)}}}},
    ],
)
def test_parts_that_all_operations_share(
    monkeypatch: pytest.MonkeyPatch, part: Any
) -> None:
    monkeypatch.setattr(schemas_module, "MOST_NODES", 1_000)
    paths = {f"/{n}": {"$ref": "#/x-item"} for n in range(11)}
    given = {"openapi": "3.1.0", "paths": paths, "x-item": {"post": part}}
    with pytest.raises(DocumentError, match="references counted each time"):
        offers_of(given, site())


def test_many_directives() -> None:
    lines = "".join(f"%TAG !a{n}! tag:x\n" for n in range(80_000))
    for first in ("", "# A comment.\n\n", "\ufeff# \x85", "\ufeff\n\ufeff\n"):
        with pytest.raises(DocumentError, match="more than 10 lines that begin"):
            read_document(f"{first}{lines}---\nopenapi: 3.1.0".encode(), 4 * MIB)
    with pytest.raises(DocumentError, match="more than 10 lines that begin"):
        read_document(lines[:1000].encode("utf-16"), 4 * MIB)


def test_signs_that_are_no_directives() -> None:
    lines = "".join(f"  %TAG {n}\n" for n in range(50))
    text = f"%YAML 1.2\n# A comment.\n---\nopenapi: 3.1.0\nx-a: |\n{lines}"
    assert read_document(text.encode(), MIB)["x-a"].count("%TAG") == 50


def test_aliases_of_one_long_text() -> None:
    lines = [f"x-text: &a {'a' * 100_000}", *(f"x-{n}: *a" for n in range(1_000))]
    with pytest.raises(DocumentError, match="aliases counted each time"):
        read_document("\n".join(["openapi: 3.1.0", *lines]).encode(), 4 * MIB)


# -- other errors ----------------------------------------------------------------------


def form(encoding: Any) -> dict[str, Any]:
    media = {"schema": {"properties": {"a": {}}}, "encoding": encoding}
    return {"requestBody": {"content": {"application/x-www-form-urlencoded": media}}}


def body(schema: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": as_json(schema)}}


@pytest.mark.parametrize(
    ("operation", "bar"),
    [
        ({"parameters": 5}, "its parameters are no list"),
        ({"parameters": {"a": {}}}, "its parameters are no list"),
        (
            {"parameters": [parameter("a", required=True, style=[])]},
            "it needs a, which cannot be given: its style is unknown",
        ),
        (body({"properties": [{}]}), "its schema is refused: "),
        (body({"properties": True}), "its schema is refused: "),
        (body({"properties": "x"}), "its schema is refused: "),
        (body({"default": deep(300)}), "its schema is refused: "),
        (body(reference("Deep")), "its schema is refused: "),
    ],
)
def test_parts_of_another_type(operation: Any, bar: str) -> None:
    components = {"schemas": {"Deep": {"enum": deep(300)}}}
    assert bar in bar_of(operation, components=components)


def test_parts_that_say_nothing() -> None:
    made = offer(form({"a": {"style": []}}), method="post")
    assert made.config["body"]["form"] == [{"name": "a", "value": "{{a}}"}]
    made = offer({"parameters": [parameter("a", style={})]})
    assert made.remarks == ("a is left out: its style is unknown",)


def test_required_of_another_type() -> None:
    for more in ({}, {"id": {"readOnly": True}}):
        schema = {"properties": {"a": {}, **more}, "required": [{}, "a", "id"]}
        made = offer(body(schema), method="post")
        assert (made.bar, made.input_schema["required"]) == ("", ["a"])


def test_an_error_that_nobody_foresaw(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_method: Any, operation: Any) -> None:
        if operation:
            raise KeyError("x")

    monkeypatch.setattr(module._OperationReader, "_refuse_streams", fail)
    assert bar_of({"summary": "a"}) == "it cannot be read; the log says why"
    assert "An operation of an OpenAPI document cannot be read" in caplog.text


# -- wrong offers ----------------------------------------------------------------------


def in_path(path: str, *names: str) -> Offer:
    return offer({"parameters": [parameter(each, "path") for each in names]}, path=path)


def test_names_in_paths_that_become_others() -> None:
    made = in_path("/{x y}/{x_y}/{x y}", "x y", "x_y")
    assert made.config["path"] == "/{{x_y}}/{{x_y_in_path}}/{{x_y}}"


def test_odd_braces() -> None:
    for path in ("/{{a}}", "/{a}}", "/{", "/{a{b}}"):
        bar = in_path(path, "a", "b").bar
        assert bar == "its path has a brace that is no parameter's"


def test_keys_that_are_cut() -> None:
    path = "/" + "a" * 495
    paths: Any = {path: {"get": {}}, path + "b": {"get": {}}, path + "…": {"get": {}}}
    made = offers_of({"openapi": "3.1.0", "paths": paths}, site())
    assert len({each.key for each in made}) == 2
    (fine,) = (each for each in made if not each.bar)
    assert fine.key == f"GET {path}"
    assert {each.key for each in made if each.bar} == {f"GET {path}…"}
