"""Schemas of tools, held against what clients and their models publish of theirs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

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
from mcp_app.server.event_waiting import EVENT_TOOL
from mcp_app.server.searching import SEARCHING_TOOLS
from mcp_app.server.waiting import RESULT_TOOL
from tests.catalog.test_form_schemas import Everything
from tests.drill.running import ROOT
from tests.server.test_types import ROUND, WRONG
from tests.toolsets import test_openapi, test_rest
from tests.toolsets.office import MODELS, office

OTHERS: Final = "additionalProperties"
CHOICES: Final = {"oneOf", "anyOf", "allOf", "not", "enum"}
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def kinds(schema: JsonObject) -> list[str]:
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def lists_texts(schema: JsonObject) -> bool:
    values = [*schema.get("enum", []), *[schema[e] for e in ("const",) if e in schema]]
    texts = all(isinstance(each, str) and each for each in values)
    return {"enum", "const"}.isdisjoint(schema) or (
        bool(values) and texts and schema.get("type") == "string"
    )


Rules: TypeAlias = dict[str, tuple[str, Callable[[JsonObject], bool]]]
DRAFT_7: Final = jsonschema_rs.Draft7Validator(
    {"$ref": "http://json-schema.org/draft-07/schema#"}
)
# OpenAI: “Function calling”. Anthropic: “Tool use”, “MCP tools”. Gemini: `Schema` of
# `FunctionDeclaration.parameters`. VS Code: `toolSchemaNormalizer.ts`.
AT_TOP: Final[Rules] = {
    "an object": (
        "OpenAI, Anthropic, VS Code",
        lambda schema: schema.get("type") == "object",
    ),
    # “input_schema does not support oneOf, allOf, or anyOf at the top level”
    "no choice": ("OpenAI, Anthropic", lambda s: s.keys().isdisjoint(CHOICES)),
    # “tool parameters do not match JSON schema”
    "draft 7": ("VS Code", DRAFT_7.is_valid),
}
EVERYWHERE: Final[Rules] = {
    # “array schema missing items”, “tool parameters array type must have items”
    "items": (
        "OpenAI, VS Code, Gemini",
        lambda s: "array" not in kinds(s) or isinstance(s.get("items"), dict),
    ),
    # “Proto field is not repeating, cannot start list”
    "one type": ("Gemini", lambda schema: len(kinds(schema)) < 2),
    # “enum: only allowed for STRING type”, “enum[0]: cannot be empty”
    "texts": ("Gemini", lists_texts),
    "no $ref": ("Gemini, Anthropic", lambda schema: "$ref" not in schema),
    "names": (
        "Anthropic",
        lambda schema: all(map(PROPERTY.fullmatch, schema.get("properties", {}))),
    ),
}


def refusals(schemas: Mapping[str, JsonObject]) -> list[tuple[str, str, str, Path]]:
    """Return the clients that refuse a tool, the tool, the rule, and the place."""
    return [
        (clients, name, rule, path)
        for name, schema in schemas.items()
        for path, _depth, inner in every_subschema(schema)
        for rule, (clients, holds) in {**EVERYWHERE, **({} if path else AT_TOP)}.items()
        if not (holds(dict(inner)) and NAME.fullmatch(name))
    ]


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
    *(definition for definition, _ in (*SEARCHING_TOOLS, RESULT_TOOL, EVENT_TOOL)),
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
    assert refusals(found) == []


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
    assert refusals(found) == []


def test_texts_of_our_own_tools_have_a_length(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.toolsets.office"
    own = {e.name: dict(e.input_schema) for e in OWN} | schemas_of(of_the_admin())
    assert [
        (name, path)
        for name, schema in own.items()
        for path, _depth, each in every_subschema(schema)
        if each.get("type") == "string"
        # Of members with any name the whole request has a limit.
        if each.keys().isdisjoint({"maxLength", "enum"}) and path[-1] != OTHERS
    ] == []


@pytest.mark.parametrize(
    ("member", "rule"),
    [
        ({"type": "array", "prefixItems": [{}]}, "items"),
        ({"type": "array", "items": {"type": "array"}}, "items"),
        ({"type": ["string", "null"]}, "one type"),
        ({"type": "integer", "enum": [1]}, "texts"),
        ({"type": "string", "enum": ["", "a"]}, "texts"),
        ({"enum": ["a"]}, "texts"),
        ({"enum": []}, "texts"),
        ({"type": []}, "draft 7"),
        ({"$ref": "#/$defs/a"}, "no $ref"),
    ],
)
def test_what_they_refuse_is_written_anew(member: JsonObject, rule: str) -> None:
    defs = {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"enum": [1, None]}}
    schema = {"type": "object", "properties": {"x": member}, "$defs": defs}
    assert rule in {each for _, _, each, _ in refusals({"x": schema})}
    assert refusals({"x": portable_schema(schema)}) == []
