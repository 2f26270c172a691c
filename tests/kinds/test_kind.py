from __future__ import annotations

from typing import Any

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.kinds.function import FunctionKind
from mcp_app.kinds.kind import KindError, refuse_unknown_members
from mcp_app.kinds.text import TextKind
from mcp_app.protocol.json_types import JsonObject
from tests.kinds.stations import Careless, Everywhere, Failing, Renamed, Silent, Station


@pytest.mark.parametrize(
    ("definition", "config"),
    [
        (ToolDefinition(name="a"), {"content": [{"type": "text", "text": "a"}]}),
        (ResourceDefinition(name="a", uri="x:a"), {"text": "a"}),
        (ResourceTemplateDefinition(name="a", uri_template="x:{a}"), {"text": "{{a}}"}),
        (
            PromptDefinition(name="a"),
            {"messages": [{"content": {"type": "text", "text": "a"}}]},
        ),
    ],
)
def test_problems_look_at_what_the_definition_is(
    definition: Definition, config: JsonObject
) -> None:
    assert TextKind().config_problems(definition, config) == []
    [problem] = TextKind().config_problems(definition, {})
    assert problem.field == "config"


def test_only_names_the_members_that_mean_something() -> None:
    refuse_unknown_members({"a": 1}, "a", "b")
    with pytest.raises(KindError) as caught:
        refuse_unknown_members({"c": 1}, "a", "b")
    assert caught.value.message == "“c” is not allowed here. Allowed are: a, b."


def test_a_kind_has_nothing_to_add_by_itself() -> None:
    definition = ToolDefinition(name="t")
    assert FunctionKind(Registry()).findings(definition, {}) == []


# -- kinds of a site -----------------------------------------------------------------

TOOL = ToolDefinition(name="t")


def test_a_config_without_words_is_described_as_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    json = [("Content as JSON", '{\n  "station": "hill"\n}')]
    hill = {"station": "hill"}
    assert Station().describe_safely(TOOL, hill) == json
    assert Station().sentence_safely(TOOL, hill) == ""
    monkeypatch.setattr(
        Station, "describe", lambda _self, _tool, it: [("Station", it["station"])]
    )
    assert Station().describe_safely(TOOL, hill) == [("Station", "hill")]
    assert Station().describe_safely(TOOL, {"station": 1})[0][0] == "Content as JSON"
    monkeypatch.setattr(Station, "describe", lambda self, *both: 1 / 0)
    assert Station().describe_safely(TOOL, hill) == json


@pytest.mark.parametrize(
    ("definition", "config", "field", "sentence"),
    [
        (PromptDefinition(name="p"), {}, "kind", "is not for this kind of definition"),
        (TOOL, {}, "config", "$: "),
        (TOOL, {"station": 7}, "config", "$.station: "),
        (TOOL, {"station": "moon"}, "config", "There is no station “moon”."),
    ],
)
def test_a_config_is_judged_by_schema_and_check(
    definition: Definition, config: JsonObject, field: str, sentence: str
) -> None:
    [problem] = Station().config_problems(definition, config)
    assert problem.field == field
    assert sentence in problem.message


def test_a_kind_that_fails_breaks_one_row(caplog: pytest.LogCaptureFixture) -> None:
    [problem] = Failing().config_problems(TOOL, {"station": "hill"})
    assert "ZeroDivisionError" in problem.message
    assert "The kind Failing raised an exception." in caplog.text


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        (TOOL, "t {} {'a': 1}"),
        (ResourceDefinition(name="r", uri="x:a"), "r {} {'a': 1}"),
        (ResourceTemplateDefinition(name="r", uri_template="x:{a}"), "r {} {'a': 1}"),
        (PromptDefinition(name="p"), "p {} {'a': 1}"),
    ],
)
def test_what_it_returns_is_converted(definition: Definition, shown: str) -> None:
    runnable = Everywhere().definition_runnable(definition, {})
    assert (runnable.style, runnable.context) == ("sync", None)
    output = runnable.convert(runnable.run(**runnable.bind({"a": 1})))
    content = getattr(output, "content", output)
    assert shown in str(content)


def test_it_may_take_the_context() -> None:
    runnable = Station().definition_runnable(TOOL, {"station": "hill"})
    assert (runnable.style, runnable.context) == ("async", "context")


def test_what_is_published_is_what_was_written() -> None:
    config: JsonObject = {"station": "hill"}
    assert Careless().config_problems(TOOL, config) == []
    assert config == {"station": "hill"}
    [problem] = Careless().config_problems(TOOL, {"station": "moon"})
    assert problem.message == "It is the moon."


async def test_each_call_has_a_config_of_its_own() -> None:
    runnable = Careless().definition_runnable(TOOL, {"station": "hill"})
    for _ in range(2):
        called: Any = runnable.run(**runnable.bind({}))
        assert await called == "hill"


@pytest.mark.parametrize("kind", [Silent, Renamed])
def test_a_kind_without_a_call_is_told_before_a_client_calls(kind: type[Any]) -> None:
    [problem] = kind().config_problems(TOOL, {})
    assert "has no method call(self, definition, config, arguments)" in problem.message
