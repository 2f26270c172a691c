"""Schemas of tools, held against what clients and their models publish of theirs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import jsonschema_rs
import pytest
from django import forms
from django.db import models
from django.test.utils import isolate_apps
from pytest_django import Settings

from mcp_app.catalog.registry import Registry
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import Path
from mcp_app.protocol.portable_schemas import portable_schema
from mcp_app.protocol.schema_graph import every_subschema
from mcp_app.server.event_waiting import event_tool
from mcp_app.server.searching import search_tools
from mcp_app.server.waiting import result_tool
from tests.catalog.test_form_schemas import Everything
from tests.drill.running import ROOT
from tests.server.test_types import ROUND, WRONG
from tests.toolsets import test_openapi, test_rest
from tests.toolsets.office import MODELS, office

ADDITIONAL: Final = "additionalProperties"
CHOICES: Final = {"oneOf", "anyOf", "allOf", "not", "enum"}
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def is_object(path: Path, schema: JsonObject) -> bool:
    return bool(path) or schema.get("type") == "object"


def is_no_choice(path: Path, schema: JsonObject) -> bool:
    return bool(path) or schema.keys().isdisjoint(CHOICES)


def has_items(path: Path, schema: JsonObject) -> bool:
    return "array" not in kinds(schema) or isinstance(schema.get("items"), dict)


def has_one_type(path: Path, schema: JsonObject) -> bool:
    return len(kinds(schema)) < 2


def lists_texts(path: Path, schema: JsonObject) -> bool:
    values = [*schema.get("enum", []), *[schema[e] for e in ("const",) if e in schema]]
    texts = all(isinstance(each, str) and each for each in values)
    return not values or (texts and schema.get("type") == "string")


def is_no_reference(path: Path, schema: JsonObject) -> bool:
    return "$ref" not in schema


def has_plain_names(path: Path, schema: JsonObject) -> bool:
    return all(map(PROPERTY.fullmatch, schema.get("properties", {})))


def is_of_draft_7(path: Path, schema: JsonObject) -> bool:
    return bool(path) or jsonschema_rs.Draft7Validator(DRAFT_7).is_valid(schema)


def kinds(schema: JsonObject) -> list[str]:
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


DRAFT_7: Final = {"$ref": "http://json-schema.org/draft-07/schema#"}
RULES: Final[dict[str, list[Callable[[Path, JsonObject], bool]]]] = {
    # “Function calling”: `parameters`; 400 “array schema missing items”.
    "OpenAI": [is_object, is_no_choice, has_items],
    # “Tool use”; “MCP tools”: 400 “does not support oneOf, allOf, or anyOf at the top”.
    "Anthropic": [is_object, is_no_choice, has_plain_names, is_no_reference],
    # `Schema` of `FunctionDeclaration.parameters`: 400 “only allowed for STRING type”,
    # “enum[0]: cannot be empty”, “missing field” of `items`.
    "Gemini": [has_items, has_one_type, lists_texts, is_no_reference],
    # `toolSchemaNormalizer.ts`: “tool parameters array type must have items”.
    "VS Code": [is_object, has_items, is_of_draft_7],
}


def refusals(name: str, schema: JsonObject) -> Iterator[tuple[str, str, str, Path]]:
    """Yield the client that refuses a tool, the tool, the rule, and the place."""
    for client, rules in RULES.items():
        if not NAME.fullmatch(name):
            yield client, name, "name", ()
        for path, _depth, inner in every_subschema(schema):
            for rule in rules:
                if not rule(path, dict(inner)):
                    yield client, name, rule.__name__, path


class Pair(NamedTuple):
    first: int
    second: str = ""


HINTS: Final = [
    *(hint for hint, *_ in (*ROUND, *WRONG)),
    *(Pair, tuple, list, dict, tuple[()], tuple[int, ...], set[tuple[str, str]]),
    *(list[tuple[int, Pair | None]], dict[str, tuple[int, int]], frozenset[int]),
]
KINDS: Final[list[Any]] = [
    each
    for name, each in vars(models).items()
    # Django 5.2 warns of each form with a URLField.
    if name.endswith("Field")
    and name not in ("Field", "URLField")
    and each.__module__ in ("django.db.models.fields", "django.db.models.fields.json")
    and not issubclass(each, models.AutoField)
    and not each.system_check_removed_details
]
OPTIONS: Final[dict[Any, Any]] = {
    models.DecimalField: {"max_digits": 5, "decimal_places": 2},
    models.FilePathField: {"path": str(ROOT / "deploy")},
}


def taking(hint: Any) -> Callable[..., None]:
    def tool(x: Any) -> None: ...

    tool.__annotations__ = {"x": hint}
    return tool


def of_types() -> Registry:
    registry = Registry()
    for number, hint in enumerate(HINTS):
        registry.tool(f"hint{number}")(taking(hint))
    return registry


@isolate_apps("tests.drill")
def of_every_field() -> Registry:
    """Return the tools of a model with one field of each kind, and of two forms."""
    fields: dict[str, Any] = {
        "letter": models.CharField(choices=[("", "None"), ("a", "A")], blank=True),
        "friend": models.ForeignKey("self", models.CASCADE, null=True, blank=True),
    }
    for kind in KINDS:
        name, more = kind.__name__.lower(), {"null": True, "blank": True}
        fields[name] = kind(**OPTIONS.get(kind, {}))
        if issubclass(kind, models.IntegerField):
            for suffix, options in (("choice", {}), ("none", more)):
                choices: Any = {"choices": [(1, "One"), (5, "Five")], **options}
                fields[f"{name}_{suffix}"] = kind(**choices)
    module = {"__module__": "tests.drill.models"}
    model: Any = type("Kinds", (models.Model,), {**fields, **module})
    registry, opened = Registry(), [*fields.keys() - {"binaryfield"}]
    registry.open_model(model, fields=opened, rows="all", permission="")
    registry.model_tools(model)
    for form in (forms.modelform_factory(model, fields="__all__"), Everything):
        registry.tool(form.__name__.lower())(taking(form))
    return registry


def of_the_admin() -> Registry:
    registry = Registry()
    registry.admin_tools(site=office, change=MODELS)
    return registry


OWN: Final = [
    *(each.definition for each in search_tools(frozenset())),
    *(make(frozenset()).definition for make in (result_tool, event_tool)),
]


def schemas_of(registry: Registry) -> dict[str, JsonObject]:
    tools = registry.tools
    assert registry.toolset_problems == {}
    return {name: dict(each.definition.input_schema) for name, each in tools.items()}


@pytest.mark.parametrize(
    ("make", "count", "urls"),
    [
        (of_types, len(HINTS), "tests.urls"),
        (of_every_field, 5, "tests.urls"),
        (of_the_admin, 8, "tests.toolsets.office"),
        (test_rest.registry_of, 15, test_rest.URLS),
        (test_openapi.registry_of, 6, "tests.toolsets.ninja_urls"),
    ],
)
def test_no_client_refuses_what_is_generated(
    make: Callable[[], Registry], count: int, urls: str, settings: Settings
) -> None:
    settings.ROOT_URLCONF = urls
    settings.REST_FRAMEWORK = {"DEFAULT_AUTHENTICATION_CLASSES": [test_rest.NAMED]}
    found = schemas_of(make())
    assert len(found) >= count
    assert [each for tool in found.items() for each in refusals(*tool)] == []


def test_no_client_refuses_the_demo_or_our_own_tools() -> None:
    program = (
        "import django, json; django.setup()\n"
        "from mcp_app.catalog.registry import mcp\n"
        "tools = {n: dict(e.definition.input_schema) for n, e in mcp.tools.items()}\n"
        "print(json.dumps(tools))"
    )
    env = {"DATABASE_URL": "sqlite://:memory:", **{k: os.environ[k] for k in ("PATH",)}}
    env["DJANGO_SETTINGS_MODULE"] = "mcp_project.settings"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=env,
        capture_output=True,
        check=True,
    )
    found = {**json.loads(ran.stdout), **{e.name: dict(e.input_schema) for e in OWN}}
    assert {"find_orders", "invoice_list", "admin_list", "get_task_result"} <= {*found}
    assert [each for tool in found.items() for each in refusals(*tool)] == []


def test_texts_of_our_own_tools_have_a_length(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.toolsets.office"
    own = {e.name: dict(e.input_schema) for e in OWN} | schemas_of(of_the_admin())
    assert [
        (name, path)
        for name, schema in own.items()
        for path, _depth, each in every_subschema(schema)
        if each.get("type") == "string"
        # Of members with any name the whole request has a limit.
        if each.keys().isdisjoint({"maxLength", "enum"}) and path[-1] != ADDITIONAL
    ] == []


REFUSED: Final[list[tuple[JsonObject, set[str]]]] = [
    ({"type": "array", "prefixItems": [{}]}, {"OpenAI", "VS Code", "Gemini"}),
    ({"type": ["string", "null"]}, {"Gemini"}),
    ({"type": "integer", "enum": [1]}, {"Gemini"}),
    ({"type": "string", "enum": ["", "a"]}, {"Gemini"}),
    ({"enum": ["a"]}, {"Gemini"}),
    ({"$ref": "#/$defs/a"}, {"Gemini", "Anthropic"}),
    ({"type": "array", "items": {"type": "array"}}, {"OpenAI", "VS Code", "Gemini"}),
]


@pytest.mark.parametrize(("member", "clients"), REFUSED)
def test_what_they_refuse_is_written_anew(
    member: JsonObject, clients: set[str]
) -> None:
    defs = {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}}}
    schema = {"type": "object", "properties": {"x": member}}
    schema |= {"$defs": {**defs, "b": {"enum": [1, None]}}} if "$ref" in member else {}
    assert {client for client, *_ in refusals("x", schema)} >= clients
    assert [*refusals("x", portable_schema(schema))] == []
