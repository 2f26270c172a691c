from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from mcp_app.catalog.lint import (
    RULES,
    Finding,
    Level,
    findings,
    registry_problems,
    unknown_rules,
)
from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import Definition, PromptArgument
from tests.catalog.lint_cases import (
    CITY,
    CLEAN,
    FOUND,
    FOUND_OF_FUNCTIONS,
    FOUND_OF_KINDS,
    FOUND_OF_PAGES,
    FOUND_OF_SERVERS,
    FOUND_OF_SKILLS,
    PROMPT,
    TOOL,
    asking,
    findings_of_page,
    findings_of_skill,
    hinted,
    taking,
    tool,
)


@pytest.mark.parametrize("definition", CLEAN)
def test_what_is_well_made_is_left_alone(definition: Definition) -> None:
    assert findings(definition) == []


def test_rules() -> None:
    told = [
        (definition, rules, found)
        for definition, rules in FOUND
        if (found := rules_of(definition)) != sorted(rules)
    ]
    assert told == []


def rules_of(definition: Definition) -> list[str]:
    return sorted(each.rule for each in findings(definition))


def test_every_rule_has_a_case() -> None:
    tables: list[list[Any]] = [FOUND, FOUND_OF_SERVERS, FOUND_OF_KINDS]
    tables += [FOUND_OF_FUNCTIONS, FOUND_OF_PAGES, FOUND_OF_SKILLS]
    rules = {rule for table in tables for case in table for rule in case[-1]}
    assert rules == set(RULES)
    assert len(set(RULES.values())) == len(RULES)


def test_why_a_page_would_be_empty() -> None:
    for template, policy, rules in FOUND_OF_PAGES:
        found = findings_of_page(template, policy)
        assert [each.rule for each in found] == rules


def test_values_that_programs_read_differently_are_told() -> None:
    for field, rules in FOUND_OF_SKILLS:
        assert [each.rule for each in findings_of_skill(field)] == rules


MESSAGES: list[tuple[Definition, str, str]] = [
    (
        tool(description=""),
        "must-fix description-missing description",
        "The description is missing. The model reads it to decide when to use the "
        "tool: say what it does, when to use it, and what comes back.",
    ),
    (
        hinted(),
        "must-fix changes-unsaid read_only",
        "Say whether this tool changes anything.",
    ),
    (
        replace(PROMPT, description=""),
        "advice description-missing description",
        "The description is missing. People read it in their client's menu. Write one"
        " sentence that says what this is.",
    ),
    (
        tool(name="shop.find"),
        "advice name-refused name",
        "“shop.find” does not work with every client: Claude and ChatGPT accept only"
        " letters, digits, _ and - in a name.",
    ),
    (
        tool(name="a" * 65),
        "advice name-refused name",
        f"“{'a' * 65}” has 65 characters; Claude and ChatGPT accept at most 64 in a"
        " name.",
    ),
    (
        taking({**CITY, "enum": ["a\u202e"]}),
        "must-fix hidden-character input_schema",
        "$.properties.city.enum[0]: There is a hidden character U+202E (RIGHT-TO-LEFT"
        " OVERRIDE) at position 2. Such characters can carry hidden instructions."
        " Remove it.",
    ),
    (
        taking({**CITY, "pattern": "^(a+)+$"}),
        "must-fix pattern-slow input_schema",
        "The pattern ^(a+)+$ could take forever. Simplify it.",
    ),
    (
        taking({**CITY, "x-mcp-header": "City_Name"}),
        "must-fix header-underscore input_schema",
        "The header City_Name has an underscore, which many servers drop. Use a"
        " hyphen.",
    ),
    (
        taking({**CITY, "descripton": "x"}),
        "advice keyword-misspelt input_schema",
        "“descripton” at $.properties.city is not a schema keyword. Did you mean"
        " “description”?",
    ),
    (
        taking({"type": "string"}),
        "advice parameter-description-missing input_schema",
        "The parameter city has no description. Without one models guess; say what it"
        " means.",
    ),
    (
        tool(description="a " * 600),
        "advice description-long description",
        "The description has 1,200 characters (≈ 300 tokens). Some clients refuse or"
        " cut more than 1,024. Two to four sentences are enough.",
    ),
    (
        asking(PromptArgument(name="tone"), PromptArgument(name="order")),
        "advice argument-description-missing arguments",
        "The arguments tone, order have no description. People read it when they fill"
        " in the arguments.",
    ),
    (
        taking(required=["town"]),
        "advice required-unknown input_schema",
        "The schema requires town, but “properties” does not have it.",
    ),
    (
        tool(input_schema={"type": "array"}),
        "must-fix schema-refused input_schema",
        'The schema needs "type": "object" at its top.',
    ),
]


@pytest.mark.parametrize(("definition", "about", "message"), MESSAGES)
def test_sentences(definition: Definition, about: str, message: str) -> None:
    level, rule, field = about.split()
    assert findings(definition) == [Finding(Level(level), rule, field, message)]


def test_a_tool_of_many_tokens() -> None:
    [found] = findings(taking({**CITY, "enum": ["a" * 4_800]}))
    assert found.message == (
        "This tool takes ≈ 1,266 tokens of the model's memory on every request; more"
        " than 1,000 is a lot. Shorten the description or the parameters."
    )
    assert found.field == ""


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, ", …")])
def test_many_names_are_cut_short(count: int, more: str) -> None:
    members = {f"p{number}": {"type": "string"} for number in range(count)}
    [found] = findings(tool(input_schema={"type": "object", "properties": members}))
    names = "p0, p1, p2, p3, p4, p5, p6, p7, p8, p9"
    assert f"parameters {names}{more} have" in found.message


def test_of_many_misspelt_keywords_some_are_told() -> None:
    members = {f"p{number}": {**CITY, "minlength": 1} for number in range(12)}
    found = findings(tool(input_schema={"type": "object", "properties": members}))
    assert [each.rule for each in found] == ["keyword-misspelt"] * 10


def test_what_must_be_fixed_comes_first() -> None:
    levels = [each.level for each in findings(tool(name="a.b", description=""))]
    assert levels == [Level.MUST_FIX, Level.ADVICE]


def test_each_column_tells_its_first_hidden_character() -> None:
    hidden = tool(
        title="\u200b\u200b", input_schema={"type": "object", "\u200b": "\u200b"}
    )
    fields = [each.field for each in findings(hidden)]
    assert fields == ["title", "input_schema"]


def test_the_site_s_limits_hold() -> None:
    with override_settings(MCP={"LIMITS": {"SUBSCHEMAS": 1}}):
        assert findings(TOOL) == findings(taking()) == []
        [found] = findings(taking({**CITY, "not": {}}))
    assert found.message == "The schema has more than 1 subschemas."


# -- cross references ------------------------------------------------------------------


def words(value: str) -> list[str]:
    return [value]


def letter(name: str) -> str:
    return name


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.prompt(letter)
    registry.prompt("empty")(lambda: "")
    registry.resource("orders:{name}")(letter)
    return registry


@pytest.mark.parametrize(
    ("reference", "argument", "said"),
    [
        ("letter", "name", None),
        ("letter", "nmae", "'letter' has no argument 'nmae' to complete. It has name."),
        ("empty", "a", "'empty' has no argument 'a' to complete. It has none."),
        ("orders:{name}", "name", None),
        (
            "orders:{name}",
            "number",
            "'orders:{name}' has no argument 'number' to complete. It has name.",
        ),
        # Staff may make one of this name.
        ("of staff", "a", None),
    ],
)
def test_completers_of_unknown_arguments(
    registry: Registry, reference: str, argument: str, said: str | None
) -> None:
    registry.complete(reference, argument)(words)
    place = registry.origins["completer", (reference, argument)].place
    start = f"{__file__}:{place.line}"
    expected = [] if said is None else [f"{start}: {__name__}.words: {said}"]
    assert registry_problems(registry) == expected


@pytest.mark.parametrize(
    ("declare", "what"),
    [
        (lambda registry: registry.tool("a", rule="weekday"), "a"),
        (lambda registry: registry.prompt("a", rule="weekday"), "a"),
        (lambda registry: registry.resource("a:b", rule="weekday"), "a:b"),
        (lambda registry: registry.resource("a:{name}", rule="weekday"), "a:{name}"),
    ],
)
def test_unknown_rules(
    registry: Registry,
    declare: Callable[[Registry], Callable[[object], object]],
    what: str,
) -> None:
    declare(registry)(lambda name="": name)
    [(sentence, rule)] = unknown_rules(registry)
    assert rule == "weekday"
    assert sentence.startswith(f"{__file__}:")
    assert sentence.endswith(
        f": {what!r} requires the rule 'weekday', which no code registers, so nobody"
        " will see it."
    )
    registry.rule("weekdays")(lambda asked: True)
    [(sentence, _)] = unknown_rules(registry)
    assert sentence.endswith(" Did you mean 'weekdays'?")
    registry.rule("weekday")(lambda asked: True)
    assert [*unknown_rules(registry)] == []
