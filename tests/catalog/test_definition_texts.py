from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from mcp_app.catalog import definition_texts
from mcp_app.catalog.definition_texts import SearchIndex, has_full_text, tokens
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.protocol import jsonrpc, results
from mcp_app.protocol.revisions import LATEST
from tests.catalog.lint_cases import CITY, CLEAN, TOOL, taking, tool


def test_the_tokens_of_a_tool_are_those_of_its_entry() -> None:
    definition = taking({**CITY, "description": "Zürich"})
    entry = jsonrpc.write(results.tool_to_wire(definition, LATEST)).decode()
    assert tokens(definition) == -(-len(entry) // 4)
    assert tokens(TOOL) < tokens(replace(TOOL, title="A title of some length"))


@pytest.mark.parametrize("definition", CLEAN)
def test_every_definition_takes_tokens(definition: Definition) -> None:
    assert tokens(definition) > 5


def test_what_has_no_json_form_takes_no_tokens() -> None:
    assert tokens(tool(input_schema={"type": object()})) == 0


# -- search index ----------------------------------------------------------------------


def search_index_tool(
    name: str, title: str = "", description: str = "", **about: str
) -> ToolDefinition:
    properties = {key: {"type": "string", "description": v} for key, v in about.items()}
    return ToolDefinition(
        name=name,
        title=title,
        description=description,
        input_schema={"type": "object", "properties": properties},
    )


TOOLS = [
    search_index_tool(
        "create_ticket", "Create a ticket", "Opens a request.", queue="Which queue."
    ),
    search_index_tool("listInvoices", "", "Lists what customers owe."),
    search_index_tool("refund", "Refund", "Pays money back for an invoice."),
    search_index_tool(
        "weather", "", "Tells rain.", zip_code="Where, as invoices have it."
    ),
]


@pytest.fixture
def index() -> SearchIndex:
    return SearchIndex(TOOLS)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("ticket", ["create_ticket"]),
        ("Tickets!", ["create_ticket"]),
        ("creating", ["create_ticket"]),
        ("createTicket", ["create_ticket"]),
        ("invoices", ["listInvoices", "refund", "weather"]),
        ("queue", ["create_ticket"]),
        ("zip", ["weather"]),
        ("rain OR ticket", ["create_ticket", "weather"]),
        ("nothing here fits", []),
        ("", []),
        ("***", []),
        ('"', []),
        ("NEAR(rain)", ["weather"]),
        ("name:rain", ["weather"]),
        ("\x00rain", ["weather"]),
    ],
)
def test_queries(index: SearchIndex, query: str, names: list[str]) -> None:
    places, total = index.find_tools(query, 10)
    assert sorted(TOOLS[at].name for at in places) == sorted(names)
    assert total == len(names)


def test_the_name_counts_most(index: SearchIndex) -> None:
    places, _total = index.find_tools("invoices", 10)
    assert TOOLS[places[0]].name == "listInvoices"


def test_verbs_of_people() -> None:
    """A tool that creates comes first for who makes something, and alone for nobody."""
    index = SearchIndex([search_index_tool("list_tickets", "Tickets"), *TOOLS])
    assert index.find_tools("make ticket", 2) == ([1, 0], 2)
    assert index.find_tools("make", 2) == ([], 0)


def test_the_limit(index: SearchIndex) -> None:
    places, total = index.find_tools("invoices", 1)
    assert (len(places), total) == (1, 3)


def test_very_long_queries(index: SearchIndex) -> None:
    assert index.find_tools("rain " * 10_000, 5) == ([3], 1)


def test_odd_schemas() -> None:
    odd = ToolDefinition(
        name="odd", input_schema={"properties": {"a": True, "b": {"title": "Blue"}}}
    )
    other = ToolDefinition(name="other", input_schema={"properties": []})
    assert SearchIndex([odd, other]).find_tools("blue", 5) == ([0], 1)


def test_a_python_without_full_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_full_text()
    has_full_text.cache_clear()
    monkeypatch.setattr(
        definition_texts, "_TABLE", "CREATE VIRTUAL TABLE t USING fts9(a)"
    )
    assert not has_full_text()
    has_full_text.cache_clear()
    with pytest.raises(sqlite3.OperationalError):
        SearchIndex([])


def test_a_sqlite_that_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda _: connect("/no/such/folder/file"))
    has_full_text.cache_clear()
    assert not has_full_text()
    has_full_text.cache_clear()


COLUMNS = ("name", "title", "description", "parameter")


def numbered(number: int, word: str) -> ToolDefinition:
    """Return a tool that alone has a word: in one of the four columns."""
    about = dict.fromkeys(COLUMNS, "what all tools have")
    about[COLUMNS[number // 2 % 4]] = word
    return search_index_tool(
        f"tool_{about['name']}".replace(" ", "_"),
        about["title"],
        about["description"],
        about=about["parameter"],
    )


def test_ten_thousand_tools() -> None:
    """Half of them are hidden: the others are found by their words, these by none."""
    tools = [numbered(each, f"own{each}word") for each in range(10_000)]
    seen = tools[::2]
    index = SearchIndex(seen)
    for number in range(0, 10_000, 2):
        places, total = index.find_tools(f"own{number}word", 8)
        assert [seen[at] for at in places] == [tools[number]]
        assert total == 1
        assert index.find_tools(f"own{number + 1}word", 8) == ([], 0)
    assert index.find_tools("what all tools have", 8)[1] == 5_000
