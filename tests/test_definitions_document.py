"""The examples of the pages on definitions can be declared; their tables are true."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import mcp_app
from mcp_app.catalog import form_urls, lint
from mcp_app.catalog.decorators import ModelOptions
from mcp_app.catalog.lint import RULES, Finding, Level
from mcp_app.catalog.open_models import missing_targets, rows_of_everybody
from mcp_app.catalog.outputs import tool_returns
from mcp_app.catalog.registry import Registry
from mcp_app.interface.context import SyncContext
from mcp_app.interface.principal import AccessRequest, Principal
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds import findings_with_kind
from mcp_app.kinds.query.comparisons import COMPARISONS
from mcp_app.kinds.query.config import MEASURES, SCHEMA
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.protocol.revisions import LATEST, STATEFUL
from mcp_app.protocol.schemas import _DIALECTS, check_schema
from tests.catalog import lint_cases
from tests.drill.models import Customer, Item, Order
from tests.drill.running import ROOT

PAGES = ("definitions", "access", "context", "open-data", "lint")
DOCUMENT = "\n".join((ROOT / f"docs/{page}.md").read_text("utf-8") for page in PAGES)
RECIPES = (ROOT / "docs/recipes.md").read_text("utf-8")


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Registry:
    models = ModuleType("shop.models")
    models.__dict__["Order"] = Order
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.models", models)
    registry = Registry()
    monkeypatch.setattr(mcp_app, "mcp", registry)
    example = re.search(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    assert example
    module = ModuleType("shop.mcp")
    monkeypatch.setitem(sys.modules, "shop.mcp", module)
    exec(example[1], module.__dict__)  # noqa: S102 - it is ours
    return registry


def test_the_example(declared: Registry) -> None:
    tool = declared.tools["find_orders"].definition
    properties: Any = tool.input_schema["properties"]
    assert properties.keys() == {"customer", "state"}
    assert tool.demands.permissions == ("shop.view_order",)
    assert declared.bindings["shop://orders/{number}"].model is Order
    assert list(declared.templates) == ["shop://orders/{number}"]
    (argument,) = declared.prompts["complaint"].definition.arguments
    assert argument.name == "product"
    assert list(declared.completers) == [("complaint", "product")]


def test_the_recipes(declared: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL)
    for number, block in enumerate(blocks):
        module = ModuleType(f"shop.recipe{number}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(block, module.__dict__)  # noqa: S102 - it is ours
    tools = {key: tool.definition for key, tool in declared.tools.items()}
    assert tools["open_tickets"].demands.groups == (frozenset({"Support"}),)
    assert tools["rebuild_index"].timeout == 20
    assert tools["delete_order"].hints.destructive
    assert tools.keys() > {"floor_plan", "cancel_order", "check_stock"}


def test_the_example_of_who_may_use_it(declared: Registry) -> None:
    section = DOCUMENT.partition("# Who may use a definition")[2].partition("\n## ")[0]
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert example
    exec(example[1], ModuleType("shop.refunds").__dict__)  # noqa: S102 - it is ours
    assert declared.tools["refund"].definition.demands == AccessRequirements(
        permissions=("shop.view_order",),
        groups=(frozenset({"Support"}),),
        rules=("shop.may_refund",),
    )
    (key,) = declared.templates["shop://refunds/{pk}"].definition.demands.rules
    assert declared.rules[key].object
    rule = declared.rules["shop.may_refund"]
    assert rule.arguments
    asked = AccessRequest(principal=Principal.ANONYMOUS, server="default")
    for is_staff, is_manager, amount, may in (
        (False, True, None, False),
        (True, False, None, True),
        (True, False, 100, True),
        (True, False, 101, False),
        (True, True, 101, True),
    ):
        user = SimpleNamespace(is_staff=is_staff, has_perm=lambda _, m=is_manager: m)
        arguments = None if amount is None else {"amount": amount}
        assert rule.judge(replace(asked, user=user, arguments=arguments)) is may
    assert rule.judge(asked) is False


def test_the_example_of_open_models(declared: Registry) -> None:
    section = DOCUMENT.partition("## Opening data to staff")[2].partition("\n## ")[0]
    code, config = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    names = {"Order": Order, "Customer": Customer, "Item": Item}
    sys.modules["shop.models"].__dict__.update(names)
    exec(code, {})  # noqa: S102 - it is ours
    assert [*missing_targets(declared.open_models, declared.wanted_models.keys())] == []
    lookup = json.loads(config.replace("shop.Order", "drill.Order"))
    query, problems = read_query_config(lookup, declared.open_models)
    assert problems == []
    assert query is not None
    assert query.per_caller
    assert [*rows_of_everybody(declared.open_models)] == []
    opening, asking = section.split("\n```json")
    rows = re.findall(r"^\| `(\w+)` \|", opening, re.MULTILINE)
    own = [*inspect.signature(declared.open_model).parameters][1:-1]
    assert rows == [*own, *ModelOptions.__annotations__]
    lookups = {each for kind in COMPARISONS.values() for each in kind}
    words = {*lookups, *MEASURES, *SCHEMA["properties"]}
    assert words - {*re.findall(r"\w+", asking)} == set()


async def test_the_example_of_the_context(declared: Registry) -> None:
    section = DOCUMENT.partition("## The context")[2].partition("## ")[0]
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert example
    module = ModuleType("shop.booking")
    sys.modules[module.__name__] = module
    try:
        exec(example[1], module.__dict__)  # noqa: S102 - it is ours
    finally:
        del sys.modules[module.__name__]
    properties: Any = declared.tools["book"].definition.input_schema["properties"]
    assert properties["day"]["description"]

    class Asking:
        def progress(self, *told: object) -> None:
            assert told == (1, 2, "Asking.")

        async def elicit(self, _: str, form: Any) -> mcp_app.Accepted[Any]:
            return mcp_app.Accepted(form(people=4))

    said = await module.__dict__["book"](Asking(), "2026-12-24")
    assert said == "A table for 4 on 2026-12-24."


def annotated(kind: type) -> dict[str, object]:
    return getattr(kind, "__annotations__", {})


def test_the_members_of_the_context() -> None:
    section = DOCUMENT.partition("## The context")[2].partition("## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if "| `" in line]
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    kinds = SyncContext.__mro__
    known = {*dir(SyncContext), *(n for each in kinds for n in annotated(each))}
    members = {name for name in known if not name.startswith("_")}
    assert named == members


def test_the_table_of_lint() -> None:
    section = DOCUMENT.partition("# Lint")[2]
    rows = [line.split(" | ") for line in section.splitlines() if "| `" in line]
    documented = {rule.strip("|` "): (int(n), level) for rule, n, level, _ in rows}
    levels: defaultdict[str, set[Level]] = defaultdict(set)
    for finding in all_findings():
        levels[finding.rule].add(finding.level)
    assert documented == {
        rule: (number, WORDS[frozenset(levels[rule])]) for rule, number in RULES.items()
    }


def all_findings() -> Iterator[Finding]:
    for definition, _rules in lint_cases.FOUND:
        yield from lint.findings(definition)
    for server, definitions, _rules in lint_cases.FOUND_OF_SERVERS:
        yield from lint.server_findings(server, definitions)
    for definition, kind, config, _rules in lint_cases.FOUND_OF_KINDS:
        yield from findings_with_kind(definition, kind, config)
    for function, _rules in lint_cases.FOUND_OF_FUNCTIONS:
        yield from form_urls.findings_of(function)
    for template, policy, _rules in lint_cases.FOUND_OF_PAGES:
        yield from lint_cases.findings_of_page(template, policy)
    for field, _rules in lint_cases.FOUND_OF_SKILLS:
        yield from lint_cases.findings_of_skill(field)


WORDS = {
    frozenset({Level.MUST_FIX}): "must",
    frozenset({Level.ADVICE}): "advice",
    frozenset(Level): "must, advice",
}


def test_the_dialects_that_schemas_may_have() -> None:
    section = DOCUMENT.partition("## Schemas\n")[2].partition("\n## ")[0]
    told = re.findall(r"20\d\d-\d\d|draft-0\d", section)
    served = [re.sub(r".*org/(draft/)?|/schema", "", each) for each in _DIALECTS]
    assert list(dict.fromkeys(told)) == served
    for dialect in _DIALECTS:
        check_schema({"$schema": dialect})


def test_what_headers_are_for_and_what_not() -> None:
    section = DOCUMENT.partition("## Parameters in headers\n")[2].partition("\n## ")[0]
    for words in ("routes by", "x-mcp-header", "can decode", "password", "token"):
        assert words in section


def test_what_structured_content_is_in_each_revision() -> None:
    """A declared type is all that an author writes; the form is the same for all."""
    said = " ".join(DOCUMENT.split())
    assert "structured content; older revisions allow only objects" in said
    numbers = tool_returns("here", list[int])
    assert numbers.convert([1, 2]).structured == {"result": [1, 2]}


def test_why_there_is_what_is_deprecated() -> None:
    section = DOCUMENT.partition("## The context")[2].partition("\n## ")[0]
    said = " ".join(section.split())
    assert "only for clients of revisions up to 2025-11-25" in said
    named = re.findall(r"`(\w+)`", said.partition(" only for clients")[0])[-3:]
    used = {"log": "logging", "sample": "sampling", "list_roots": "roots"}
    assert {used[each] for each in named} == LATEST.deprecated
    assert not any(each.deprecated for each in STATEFUL.values())


def test_progress_is_advised() -> None:
    assert "Report progress if a call takes more than two or three seconds" in DOCUMENT
