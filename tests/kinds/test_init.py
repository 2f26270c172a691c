from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcp_app.catalog.findings import Level, advice, must_fix
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import StoredDefinition
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds import (
    KindError,
    Problem,
    complete_definition,
    findings_with_kind,
    serving_problems,
    usable_kinds,
)
from mcp_app.protocol.json_types import JsonObject
from tests.catalog.lint_cases import (
    FOUND_OF_KINDS,
    TONE,
    prompting,
    saying,
    taking,
    tool,
)
from tests.kinds.stations import Station, measures


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.tool("find")(lambda: "")
    registry.resource("x:policy")(lambda: "")
    registry.resource("x:orders/{id}")(lambda id: id)
    registry.prompt("write")(lambda: "")
    return registry


@pytest.mark.parametrize(
    ("definition", "field", "value"),
    [
        (ToolDefinition(name="find"), "name", "find"),
        (ResourceDefinition(name="a", uri="x:policy"), "uri", "x:policy"),
        (
            ResourceTemplateDefinition(name="a", uri_template="x:orders/{id}"),
            "uri_template",
            "x:orders/{id}",
        ),
        (PromptDefinition(name="write"), "name", "write"),
    ],
)
def test_what_code_declares_cannot_be_made_again(
    registry: Registry, definition: Definition, field: str, value: str
) -> None:
    message = f"“{value}” is declared in code already; choose another one."
    said = serving_problems(definition, "text", {}, registry=registry)
    assert said[0] == Problem(field, message)
    assert len(said) == 2
    found = findings_with_kind(definition, "text", {}, registry=registry)
    assert must_fix("kind", field, message) in found


def test_other_names_are_free(registry: Registry) -> None:
    definition = ToolDefinition(name="other")
    config = {"content": [{"type": "text", "text": "a"}]}
    assert serving_problems(definition, "text", config, registry=registry) == []


def test_an_unknown_kind_is_told(registry: Registry) -> None:
    said = serving_problems(ToolDefinition(name="a"), "smoke", {}, registry=registry)
    assert said == [Problem("kind", "There is no kind “smoke”.")]


def of_station(
    definition: Definition, config: JsonObject, *stated: str
) -> StoredDefinition[Definition]:
    return StoredDefinition(
        definition=definition,
        kind="station",
        config=config,
        key=("tool", "1"),
        stated=frozenset(stated),
    )


STATIONS = {"station": Station()}


def test_a_kind_completes_a_definition() -> None:
    stored = of_station(ToolDefinition(name="a", title="Wind"), {"station": "hill"})
    made = complete_definition(stored, STATIONS)
    assert made == replace(
        stored,
        definition=ToolDefinition(
            name="a",
            title="Wind",
            input_schema=measures("hill"),
            hints=ToolHints(read_only=True),
            demands=AccessRequirements(permissions=("sea.view",)),
        ),
    )


def test_what_a_row_states_wins_over_its_kind() -> None:
    own = {"type": "object", "properties": {"hour": {"type": "integer"}}}
    stored = of_station(
        ToolDefinition(name="a", input_schema=own), {"station": "hill"}, "input_schema"
    )
    made = complete_definition(stored, STATIONS).definition
    assert isinstance(made, ToolDefinition)
    assert made.input_schema == own
    assert made.hints.read_only


@pytest.mark.parametrize(
    ("definition", "config"),
    [
        (ToolDefinition(name="a"), {}),
        (ToolDefinition(name="a"), {"station": 7}),
        (PromptDefinition(name="a"), {"station": "hill"}),
        (ResourceDefinition(name="a", uri="x:a"), {"station": "hill"}),
    ],
)
def test_nothing_follows_from_what_does_not_fit(
    definition: Definition, config: JsonObject
) -> None:
    stored = of_station(definition, config)
    assert complete_definition(stored, STATIONS) == stored
    assert complete_definition(stored, {}) == stored


def test_a_kind_that_fails_to_complete_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Lost(Station):
        def complete(self, definition: Any, config: JsonObject) -> Any:
            raise LookupError("no map")

    stored = of_station(ToolDefinition(name="a"), {"station": "hill"})
    with pytest.raises(KindError, match=r"failed to read this: LookupError\('no map'"):
        complete_definition(stored, {"station": Lost()})
    assert "The kind Lost raised an exception." in caplog.text


def test_the_kinds_of_rows() -> None:
    kinds = ["text", "function", "query", "http", "upstream", "skill", "change"]
    assert [*usable_kinds(Registry())] == kinds


@pytest.mark.parametrize(("definition", "kind", "config", "rules"), FOUND_OF_KINDS)
def test_lint_looks_behind_a_definition(
    definition: Definition, kind: str, config: JsonObject, rules: list[str]
) -> None:
    assert [each.rule for each in findings_with_kind(definition, kind, config)] == rules


def test_uploads_come_along() -> None:
    image = {"type": "image", "upload": "d", "mimeType": "image/png"}
    config = {"content": [image]}
    assert findings_with_kind(tool(), "text", config, {"d": b"a"}) == []
    [found] = findings_with_kind(tool(), "text", config)
    assert found.rule == "kind"


def test_names_that_no_text_uses() -> None:
    assert findings_with_kind(taking(), "text", saying("Rain.")) == [
        must_fix(
            "parameter-unused",
            "input_schema",
            "The parameter city is not used anywhere. Use it in the text, or remove"
            " it.",
        )
    ]
    assert findings_with_kind(TONE, "text", prompting("Be kind.")) == [
        advice("parameter-unused", "arguments", "The argument tone is never used.")
    ]


def test_all_that_is_said_of_code_is_advice() -> None:
    found = findings_with_kind(
        ToolDefinition(name="find", input_schema={"type": "array"})
    )
    assert {each.rule for each in found} == {
        "description-missing",
        "changes-unsaid",
        "outside-unsaid",
        "title-missing",
        "schema-refused",
    }
    assert {each.level for each in found} == {Level.ADVICE}


def test_what_hides_in_code_is_no_advice() -> None:
    text = {"type": "string", "default": "\u200b"}
    schema = {"type": "object", "properties": {"a": text}}
    tool = ToolDefinition(name="a", description="d\u202e", input_schema=schema)
    found = findings_with_kind(tool)
    hidden = [each for each in found if each.rule == "hidden-character"]
    assert [each.field for each in hidden] == ["description", "input_schema"]
    assert found[:2] == hidden
    assert {each.level for each in hidden} == {Level.MUST_FIX}
    assert {each.level for each in found[2:]} == {Level.ADVICE}


def test_what_must_be_fixed_comes_first() -> None:
    found = findings_with_kind(tool(name="a.b"), "text", {})
    assert [each.level for each in found] == [Level.MUST_FIX, Level.ADVICE]
