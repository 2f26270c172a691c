"""The snapshot of a server: lists in order and by pages, who sees what, and changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.snapshot import (
    MAX_PLACE_LENGTH,
    MAX_SELECTIONS,
    Catalog,
    Entry,
    Listing,
    VisibilityKey,
    event_entry,
    prompt_entry,
    resource_entry,
    template_entry,
    tool_entry,
)
from mcp_app.interface.definitions import (
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.principal import Scope
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.server import PUBLIC, ServerDefinition
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.revisions import LATEST, REVISIONS

OLDEST = next(iter(REVISIONS.values()))
VIEW = AccessRequirements(permissions=("shop.view_order",))
AUDIT = AccessRequirements(permissions=("shop.audit",))
NOTHING_RUNS: Runnable[Any] = Runnable(
    run=lambda: None, style="inline", bind=dict, convert=lambda output: output
)


def tool(name: str, position: int = 0, **more: Any) -> Entry[Any, Any]:
    definition = ToolDefinition(name=name, position=position, **more)
    return tool_entry(definition, NOTHING_RUNS)


def resource(uri: str, name: str = "r", **more: Any) -> Entry[Any, Any]:
    definition = ResourceDefinition(name=name, uri=uri, **more)
    return resource_entry(definition, NOTHING_RUNS)


def template(pattern: str, name: str = "t", **more: Any) -> Any:
    definition = ResourceTemplateDefinition(name=name, uri_template=pattern, **more)
    return template_entry(definition, NOTHING_RUNS)


def prompt(name: str, **more: Any) -> Entry[Any, Any]:
    return prompt_entry(PromptDefinition(name=name, **more), NOTHING_RUNS)


def names(entries: Iterable[Entry[Any, Any]]) -> str:
    return "".join(each.definition.name for each in entries)


def listing(letters: str, page_size: int = 100) -> Listing:
    return Listing(map(tool, letters), page_size)


# -- order and pages ---------------------------------------------------------------


def test_lists_are_in_order_of_position_then_name() -> None:
    listed = Listing([tool("b"), tool("c", -1), tool("a", 1), tool("a2")], 100)
    assert names(listed) == "ca2ba"
    assert len(listed) == 4


def test_two_of_one_name_are_both_listed() -> None:
    listed = Listing([resource("shop://b"), resource("shop://a")], 100)
    assert [each.identity for each in listed] == ["shop://a", "shop://b"]


def test_a_long_place_fits_into_a_cursor_and_stays_apart() -> None:
    for more in (0, 1, 900):
        uri = "shop://" + "x" * (MAX_PLACE_LENGTH - len("r\nshop://") + more - 1)
        places = {resource(uri + end).place_in_list for end in "ab"}
        assert len(places) == 2
        assert all(len(text) <= MAX_PLACE_LENGTH for _, text in places)


def shown(listed: Listing, after: Any = None) -> tuple[str, Any]:
    page = listed.page_after(LATEST, after)
    items = json.loads(jsonrpc.write(page.items))
    return "".join(each["name"] for each in items), page.next


@pytest.mark.parametrize(
    ("size", "pages"),
    [(1, ["a", "b", "c"]), (2, ["ab", "c"]), (3, ["abc"]), (4, ["abc"])],
)
def test_page_by_page(size: int, pages: list[str]) -> None:
    listed, after = listing("abc", size), None
    for page in pages[:-1]:
        items, after = shown(listed, after)
        assert (items, after is None) == (page, False)
    assert shown(listed, after) == (pages[-1], None)


def test_a_place_that_is_gone_and_one_beyond_the_end() -> None:
    listed = listing("aceg", 2)
    assert shown(listed, (0, "b"))[0] == "ce"
    assert shown(listed, (9, "")) == ("", None)


def test_only_our_own_pages_are_kept_each_for_its_revision() -> None:
    listed = listing("abcd", 2)
    first, within = listed.page_after(LATEST, None), listed.page_after(LATEST, (0, "a"))
    assert listed.page_after(LATEST, None) is first
    assert listed.page_after(OLDEST, None) is not first
    assert listed.page_after(LATEST, (0, "a")) is not within
    assert listed.first_result(LATEST) is None
    first.result = b"{}"
    assert listed.first_result(LATEST) == b"{}"
    assert listed.first_result(OLDEST) is None
    assert listing("abcd").first_result(LATEST) is None


# -- who sees what -----------------------------------------------------------------


def seen(
    listed: Listing, *met: AccessRequirements, scope: Scope | None = None
) -> Listing:
    def visible(entry: Entry[Any, Any]) -> bool:
        demands = entry.definition.demands
        if scope is not None and not scope.includes(entry.definition):
            return False
        return not demands or demands in met

    return listed.visible_part(VisibilityKey(frozenset(met), scope), visible)


def test_everybody_sees_the_list_itself() -> None:
    listed = listing("ab")
    assert not listed.is_restricted
    assert seen(listed, VIEW) is listed


def test_a_limited_token_sees_its_own_list_of_a_server_for_all() -> None:
    listed = Listing([tool("a", tags=frozenset({"x"})), tool("b")], 100)
    assert seen(listed) is listed
    assert names(seen(listed, scope=Scope(tags=frozenset({"x"})))) == "a"
    assert names(seen(listed, scope=Scope(tags=frozenset({"y"})))) == ""
    assert names(seen(listed)) == "ab"


def test_rights_and_scopes_are_kept_apart() -> None:
    listed = Listing([tool("a", demands=VIEW), tool("b", demands=AUDIT)], 100)
    reads = Scope(read_only=True)
    assert names(seen(listed)) == ""
    assert names(seen(listed, VIEW)) == "a"
    assert names(seen(listed, VIEW, AUDIT)) == "ab"
    assert names(seen(listed, VIEW, scope=reads)) == ""
    assert names(seen(listed, VIEW)) == "a"
    # A demand of another list makes no difference.
    other = AccessRequirements(rules=("shop.rule",))
    assert seen(listed, VIEW, other) is seen(listed, VIEW)


def test_the_selection_asked_for_longest_ago_is_dropped() -> None:
    each = [
        AccessRequirements(permissions=(f"shop.p{number}",))
        for number in range(MAX_SELECTIONS)
    ]
    listed = Listing(
        [tool(f"t{number}", demands=demands) for number, demands in enumerate(each)],
        100,
    )
    first, second = seen(listed, each[0]), seen(listed, each[1])
    for demands in each[2:]:
        seen(listed, demands)
    assert seen(listed, each[0]) is first
    seen(listed, *each)
    assert seen(listed, each[0]) is first
    assert seen(listed, each[1]) is not second


# -- changes -----------------------------------------------------------------------


def test_a_changed_list_is_as_one_made_anew() -> None:
    gone, stays = tool("b", demands=VIEW), tool("a", demands=VIEW)
    before = Listing([gone, stays, tool("d")], 2)
    after = before.with_changes([gone], [tool("c", demands=AUDIT), tool("e", -1)])
    assert names(after) == "eacd"
    assert after.demands == {VIEW, AUDIT}
    assert shown(after)[0] == "ea"
    assert names(before) == "abd"
    assert before.demands == {VIEW}


def test_a_demand_goes_with_the_last_that_has_it() -> None:
    first, second = tool("a", demands=VIEW), tool("b", demands=VIEW)
    both = Listing([first, second], 100)
    one = both.with_changes([first], [])
    assert one.demands == {VIEW}
    assert one.with_changes([second], []).demands == frozenset()


def catalog(**more: Any) -> Catalog:
    return Catalog(ServerDefinition(slug="default", access=(PUBLIC,)), **more)


def test_what_did_not_change_is_the_same() -> None:
    entry = tool("a")
    before = catalog(tools=[entry], prompts=[prompt("p")])
    assert before.with_changes({}) is before
    assert before.with_changes({"tools": {"a": entry, "b": None}}) is before
    after = before.with_changes({"tools": {"b": tool("b")}})
    assert [*after.tools] == ["a", "b"]
    assert after.tools["a"] is entry
    assert after.listings["prompts"] is before.listings["prompts"]
    assert [*before.tools] == ["a"]
    assert [*after.with_changes({"tools": {"a": None}}).tools] == ["b"]


def test_what_was_encoded_of_a_server_is_not_its_successors() -> None:
    before = catalog()
    end = before.result_end(LATEST)
    assert before.result_end(LATEST) is end
    after = before.with_changes({"tools": {"b": tool("b", demands=VIEW)}})
    assert (before.open, after.open) == (True, False)


@pytest.mark.parametrize(
    ("server", "entry", "open_to_all"),
    [
        ({}, NO_REQUIREMENTS, True),
        ({"access": ("token",)}, NO_REQUIREMENTS, False),
        ({"demands": VIEW}, NO_REQUIREMENTS, False),
        ({}, VIEW, False),
    ],
)
@pytest.mark.parametrize("stopped", [True, False])
def test_where_nobody_need_say_who_asks(
    server: dict[str, Any], entry: AccessRequirements, open_to_all: bool, stopped: bool
) -> None:
    definition = replace(catalog().server, **server)
    one = tool("a", demands=entry)
    offered: dict[str, Any] = (
        {"stopped": {"tools": {"a": one}}} if stopped else {"tools": [one]}
    )
    made = Catalog(definition, **offered)
    assert made.open is open_to_all
    assert made.demands == {definition.demands, entry} - {NO_REQUIREMENTS}


def test_lists_that_differ_from_user_to_user() -> None:
    made = catalog(
        resources=[resource("shop://a", demands=VIEW)],
        templates=[template("shop://{x}", demands=VIEW)],
        prompts=[prompt("p", demands=VIEW)],
        tools=[tool("a")],
    )
    assert made.personal_lists == ("resources", "prompts")
    assert catalog(tools=[tool("a")]).personal_lists == ()


# -- resources and what is switched off ----------------------------------------------


def found(made: Catalog, uri: str) -> list[tuple[str, Any, bool]]:
    return [
        (each.entry.definition.name, each.variables, each.stopped)
        for each in made.matches_of_uri(uri)
    ]


def test_a_resource_comes_before_templates_in_their_order() -> None:
    made = catalog(
        resources=[resource("shop://7", "seven")],
        templates=[template("shop://{b}", "b"), template("shop://{a}", "a")],
    )
    assert found(made, "shop://7") == [
        ("seven", {}, False),
        ("a", {"a": "7"}, False),
        ("b", {"b": "7"}, False),
    ]
    assert found(made, "other://7") == []


def test_what_is_switched_off_answers_in_its_place() -> None:
    off = {
        "resources": {"shop://7": resource("shop://7", "seven")},
        "templates": {"shop://{a}": template("shop://{a}", "a")},
    }
    made = catalog(templates=[template("shop://{b}", "b")], stopped=off)
    assert found(made, "shop://7") == [
        ("seven", {}, True),
        ("a", {"a": "7"}, True),
        ("b", {"b": "7"}, False),
    ]
    assert names(made.listings["templates"]) == "b"
    entry = off["resources"]["shop://7"]
    assert made.switched_off("resources", "shop://7") is entry
    assert made.switched_off("tools", "shop://7") is None


def test_what_is_switched_off_is_told_by_kind_and_identity() -> None:
    made = catalog(stopped={"tools": {"a": tool("a")}})
    assert made.has_switched_off(tool("a", 5))
    assert not made.has_switched_off(tool("b"))
    assert not made.has_switched_off(prompt("a"))


def test_to_switch_off_and_on_again() -> None:
    entry = tool("a", demands=VIEW)
    on = catalog(tools=[entry])
    off = on.with_changes({"tools": {"a": None}}, {"tools": {"a": entry}})
    assert (len(off.tools), off.switched_off("tools", "a")) == (0, entry)
    assert off.demands == {VIEW}
    assert on.switched_off("tools", "a") is None
    again = off.with_changes({"tools": {"a": entry}}, {"tools": {"a": None}})
    assert again.tools == {"a": entry}
    assert again.stopped == {}


# -- what is made once ---------------------------------------------------------------


def test_an_entry_is_encoded_once_for_each_revision() -> None:
    entry = tool("a", title="A")
    assert entry.encoded_text(LATEST) is entry.encoded_text(LATEST)
    assert json.loads(entry.encoded_text(LATEST))["title"] == "A"
    # The oldest revision knows no titles.
    assert "title" not in json.loads(entry.encoded_text(OLDEST))


def test_a_tool_and_its_schemas() -> None:
    plain: Any = tool("a")
    assert plain.scalar is None
    assert plain.output_validator is None
    assert plain.validator is plain.validator
    promised = {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }
    typed: Any = tool("a", output_schema=promised)
    assert typed.scalar is int
    assert typed.output_validator is typed.output_validator


def own_tools(server: ServerDefinition, tools: Any, *_: Any) -> list[Any]:
    tags = frozenset[str]().union(*(each.definition.tags for each in tools))
    return [tool("search_tools", tags=tags)] if server.uses_search else []


def searched(**more: Any) -> Catalog:
    server = ServerDefinition(
        slug="s", listing="search", listed_tags=frozenset({"listed"}), **more
    )
    tools: list[Any] = [
        tool("a", tags=frozenset({"listed"})),
        tool("b", tags=frozenset({"money"}), demands=AUDIT),
    ]
    return Catalog(server, tools=tools, own_tools=own_tools)


def names_in(listing: Listing) -> list[str]:
    return [each.identity for each in listing]


def test_a_server_that_searches() -> None:
    catalog = searched()
    assert names_in(catalog.listings["tools"]) == ["a", "search_tools"]
    assert names_in(catalog.offered["tools"]) == ["a", "b"]
    assert catalog.tools.keys() == {"a", "b", "search_tools"}
    # What is not listed is demanded, all the same.
    assert catalog.demands == {AUDIT}
    own = catalog.tools["search_tools"].definition
    assert own.tags == {"listed", "money"}


def test_a_server_that_searches_changes() -> None:
    catalog = searched()
    new = tool("c", tags=frozenset({"listed", "new"}))
    changed = catalog.with_changes({"tools": {"c": new, "a": None}})
    assert names_in(changed.listings["tools"]) == ["c", "search_tools"]
    assert names_in(changed.offered["tools"]) == ["b", "c"]
    assert changed.tools.keys() == {"b", "c", "search_tools"}
    assert changed.tools["search_tools"].definition.tags == {"money", "listed", "new"}
    assert changed.with_changes({"tools": {"c": new}}) is changed
    # The tools that search win, whatever a row is called.
    row = tool("search_tools", tags=frozenset({"listed"}))
    both = changed.with_changes({"tools": {"search_tools": row}})
    assert both.tools["search_tools"] is not row
    assert names_in(both.listings["tools"]) == ["c", "search_tools"]
    without = both.with_changes({"tools": {"search_tools": None}})
    assert names_in(without.offered["tools"]) == ["b", "c"]


def test_a_server_that_lists_has_no_tools_of_its_own() -> None:
    catalog = Catalog(ServerDefinition(slug="s"), own_tools=own_tools)
    assert catalog.tools == {}
    assert catalog.listings["tools"] is catalog.offered["tools"]


def test_who_sees_no_event_type_sees_no_tool_for_them() -> None:
    """Whether the tool is seen follows from the demands of the event types, too."""
    definition = EventDefinition(name="order.paid", topic="order.paid", demands=AUDIT)
    catalog = Catalog(
        ServerDefinition(slug="s"),
        events=[event_entry(definition, tool("any").runnable)],
        own_tools=lambda *_: [tool("wait_for_event")],
    )
    tools = catalog.listings["tools"]
    assert tools.demands == {AUDIT}
    none: frozenset[AccessRequirements] = frozenset()
    for_all = tools.visible_part(VisibilityKey(none | {AUDIT}, None), lambda _: True)
    for_nobody = tools.visible_part(VisibilityKey(none, None), lambda _: False)
    assert (names_in(for_all), names_in(for_nobody)) == (["wait_for_event"], [])
