"""Building catalogs of what code declares and of what rows store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import OperationalError
from django.test import override_settings

from mcp_app.catalog.registry import Registry
from mcp_app.catalog.snapshot import LISTS, Catalog
from mcp_app.invalidation import changes
from mcp_app.invalidation.change_reader import ChangeSet
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.process.loading import Catalogs
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

CONTENT = '{"content": [{"type": "text", "text": "from a row"}]}'


@pytest.fixture
def registry() -> Registry:
    made = Registry()

    @made.tool(tags=["shop"])
    async def declared_tool() -> str:
        return "from code"

    @made.resource("shop://list")
    async def declared_resource() -> str:
        return "from code"

    @made.resource("shop://item/{name}")
    async def declared_template(name: str) -> str:
        return name

    @made.prompt
    async def declared_prompt(word: str) -> str:
        return word

    @made.complete("declared_prompt", "word")
    async def complete_word(value: str) -> list[str]:
        return [value]

    return made


@pytest.fixture(autouse=True)
def _servers() -> None:
    Server.objects.all().delete()
    published(Server(slug="default", access="public"))
    published(Server(slug="shop", access="public", selection="tags", tags="shop"))
    stopped(published(Server(slug="off")))


def rows() -> None:
    for row in (
        Tool(name="stored_tool", kind="text", config=CONTENT, tags="shop"),
        Tool(name="stored_elsewhere", kind="text", config=CONTENT),
        Tool(name="stopped", kind="text", config=CONTENT),
        Resource(name="r", uri="shop://stored", kind="text", config='{"text": "r"}'),
        ResourceTemplate(
            name="t",
            uri_template="shop://stored/{id}",
            kind="text",
            config='{"text": "{{id}}"}',
        ),
        Prompt(
            name="stored_prompt",
            kind="text",
            config='{"messages": [{"role": "user", "content": {"type": "text",'
            ' "text": "p"}}]}',
        ),
    ):
        published(row)
    Tool.objects.create(name="unpublished", kind="text", config=CONTENT)
    stopped(Tool.objects.get(name="stopped"))


EVERYTHING = ChangeSet(everything=True)


def load_catalogs(registry: Registry) -> Mapping[str, Catalog]:
    catalogs = Catalogs(registry)
    catalogs.load_changes(EVERYTHING)
    return catalogs.by_slug


def identities(catalog: Catalog) -> dict[str, set[str]]:
    return {name: set(getattr(catalog, name)) for name in LISTS}


def test_code_and_rows_side_by_side(registry: Registry) -> None:
    rows()
    catalogs = load_catalogs(registry)
    assert set(catalogs) == {"default", "shop"}
    assert identities(catalogs["default"]) == {
        "tools": {"declared_tool", "stored_tool", "stored_elsewhere"},
        "resources": {"shop://list", "shop://stored"},
        "templates": {"shop://item/{name}", "shop://stored/{id}"},
        "prompts": {"declared_prompt", "stored_prompt"},
        "events": set(),
    }
    assert identities(catalogs["shop"]) == {
        "tools": {"declared_tool", "stored_tool"},
        "resources": set(),
        "templates": set(),
        "prompts": set(),
        "events": set(),
    }


def test_a_row_never_hides_what_code_declares(registry: Registry) -> None:
    published(Tool(name="declared_tool", kind="text", config=CONTENT, tags="shop"))
    tools = load_catalogs(registry)["default"].tools
    assert tools["declared_tool"].runnable.style == "async"


def test_kinds_that_fail_take_no_other_row_along(registry: Registry) -> None:
    kinds = {
        "station": "tests.kinds.stations.Station",
        "failing": "tests.kinds.stations.Failing",
        "gone": "no.such.module.Kind",
        "unmade": "tests.kinds.stations.Unmade",
        "text": "tests.kinds.stations.Everywhere",
    }
    config = '{"station": "hill"}'
    rows()
    for kind in ("station", "failing", "gone", "unmade"):
        published(Tool(name=f"by_{kind}", kind=kind, config=config))
    published(Prompt(name="by_station", kind="station", config=config))
    with override_settings(MCP={"KINDS": kinds}):
        catalog = load_catalogs(registry)["default"]
    assert "by_station" in catalog.tools
    assert {"by_failing", "by_gone", "by_unmade"}.isdisjoint(catalog.tools)
    # No prompt can be of this kind.
    assert "by_station" not in catalog.prompts
    assert "stored_tool" in catalog.tools


def test_rows_that_cannot_be_served_are_named_with_their_versions(
    registry: Registry,
) -> None:
    rows()
    unreadable = published(Prompt(name="unreadable", kind="text", arguments="[1]"))
    unusable = published(Tool(name="unusable", kind="gone", config=CONTENT))
    catalogs = Catalogs(registry)
    catalogs.load_changes(EVERYTHING)
    broken = {key: version for key, version, _ in catalogs.broken_rows()}
    assert broken == {
        ("prompt", str(unreadable.pk)): unreadable.published_id,
        ("tool", str(unusable.pk)): unusable.published_id,
    }


# -- what a change loads ------------------------------------------------------------


class Loading:
    """Catalogs of a registry; `after` is what they are after some rows changed."""

    def __init__(self, registry: Registry) -> None:
        self.catalogs = Catalogs(registry)
        self.catalogs.load_changes(EVERYTHING)

    def after(self, *rows: Tool | Server) -> Mapping[str, Catalog]:
        named = tuple((row.kind_of_row, str(row.pk)) for row in rows)
        self.catalogs.load_changes(ChangeSet(rows=named))
        return self.catalogs.by_slug

    def after_stops(self) -> Mapping[str, Catalog]:
        self.catalogs.load_changes(ChangeSet(rows=((changes.STOP, "*"),)))
        return self.catalogs.by_slug


@pytest.fixture
def loading(registry: Registry) -> Loading:
    rows()
    return Loading(registry)


def improved(name: str) -> Tool:
    row = Tool.objects.get(name=name)
    row.description = "Better."
    row.save()
    return row


def chosen(tool: Tool) -> Server:
    server = Server.objects.get(slug="shop")
    server.selection = "chosen"
    server.save()
    server.tools.add(tool)
    server.refresh_from_db()
    return server


def test_a_change_replaces_one_entry_and_keeps_the_others(loading: Loading) -> None:
    before = loading.catalogs.by_slug
    row = improved("stored_tool")
    assert loading.after(row) == before
    published(row)
    after = loading.after(row)
    for slug in ("default", "shop"):
        old, new = before[slug], after[slug]
        assert new.tools["stored_tool"].definition.description == "Better."
        assert old.tools["stored_tool"].definition.description == ""
        assert new.tools["declared_tool"] is old.tools["declared_tool"]
        assert new.listings["prompts"] is old.listings["prompts"]
        assert [each.identity for each in new.listings["tools"]] == [
            each.identity for each in old.listings["tools"]
        ]


def test_a_new_name_takes_the_place_of_the_old_one(loading: Loading) -> None:
    # A server that does not offer what changes stays as it is.
    before = loading.catalogs.by_slug
    after = loading.after(published(improved("stored_elsewhere")))
    assert after["shop"] is before["shop"]
    assert after["default"] is not before["default"]
    row = Tool.objects.get(name="stored_tool")
    row.name = "renamed"
    row.save()
    tools = loading.after(published(row))["shop"].tools
    assert set(tools) == {"declared_tool", "renamed"}


def test_a_change_that_names_nobody_loads_only_what_differs(
    loading: Loading,
    django_assert_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    with django_assert_num_queries(1):
        loading.catalogs.load_changes(ChangeSet(rows=(("tool", "*"),)))
    published(improved("stored_tool"))
    with django_assert_num_queries(2):
        loading.catalogs.load_changes(ChangeSet(rows=(("tool", "*"),)))
    tools = loading.catalogs.by_slug["default"].tools
    assert tools["stored_tool"].definition.description == "Better."


def test_a_server_is_made_anew_where_it_offers_something_else(loading: Loading) -> None:
    before = loading.catalogs.by_slug
    server = Server.objects.get(slug="shop")
    server.tags = "nothing"
    server.save()
    assert loading.after(server)["shop"] is before["shop"]
    after = loading.after(published(server))
    assert identities(after["shop"])["tools"] == set()
    assert after["default"] is before["default"]
    stopped(server)
    assert set(loading.after_stops()) == {"default"}


def test_a_server_of_chosen_definitions(loading: Loading) -> None:
    server = chosen(Tool.objects.get(name="stored_elsewhere"))
    assert server.state == "changed"
    tools = identities(loading.after(published(server))["shop"])["tools"]
    assert tools == {"stored_elsewhere"}


@pytest.mark.parametrize(
    "failing", ["load_servers", "load_stops", "served_versions", "load_rows"]
)
def test_loading_that_fails_changes_nothing(
    loading: Loading, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = loading.catalogs.by_slug
    row = published(improved("stored_tool"))

    def fail(*_: object, **__: object) -> None:
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(f"mcp_app.catalog.row_loader.{failing}", fail)
        with pytest.raises(OperationalError):
            loading.catalogs.load_changes(EVERYTHING)
    assert loading.catalogs.by_slug is before
    assert loading.after(row)["shop"].tools["stored_tool"].definition.description


# -- overlays -----------------------------------------------------------------------


def overlay(**columns: Any) -> Tool:
    return Tool.objects.create(name="declared_tool", source="code", **columns)


def test_an_empty_overlay_changes_nothing(loading: Loading) -> None:
    before = loading.catalogs.by_slug["shop"].tools["declared_tool"]
    assert ("tools", "declared_tool") in loading.catalogs.missing_overlays()
    after = loading.after(overlay())["shop"].tools["declared_tool"]
    assert after.definition == before.definition
    assert ("tools", "declared_tool") not in loading.catalogs.missing_overlays()


def test_an_overlay_is_laid_over_code_where_it_is_published(loading: Loading) -> None:
    row = overlay(title="Better", tags="other", permission="mcp_app.view_tool")
    assert not loading.after(row)["default"].tools["declared_tool"].definition.title
    after = loading.after(published(row))
    definition = after["default"].tools["declared_tool"].definition
    assert definition.title == "Better"
    assert definition.demands.permissions == ("mcp_app.view_tool",)
    assert "declared_tool" not in after["shop"].tools


def test_an_overlay_of_what_code_lacks_is_kept_and_unserved(loading: Loading) -> None:
    row = Tool.objects.create(name="vanished", source="code", title="T")
    assert "vanished" not in loading.after(published(row))["default"].tools


def test_two_releases_of_the_code_serve_their_own_schemas() -> None:
    """In a rolling deploy each process serves what its own code takes."""
    old, new = Registry(), Registry()

    @old.function("find")
    async def find_old(customer: str) -> str:
        return customer

    @new.function("find")
    async def find_new(customer: str, limit: int) -> str:
        return customer * limit

    config = '{"function": "find"}'
    published(Tool(name="follows", kind="function", config=config))
    given = (
        '{"type": "object", "properties": {"customer": {"type": "string"}}, '
        '"required": ["customer"]}'
    )
    published(Tool(name="fixed", kind="function", config=config, input_schema=given))
    tools = {
        name: load_catalogs(registry)["default"].tools
        for name, registry in (("old", old), ("new", new))
    }
    assert set(tools["old"]) == {"follows", "fixed"}
    assert set(tools["new"]) == {"follows"}
    schema = tools["new"]["follows"].definition.input_schema
    assert schema["required"] == ["customer", "limit"]


def test_a_server_may_choose_a_row_that_nobody_was_told_of(loading: Loading) -> None:
    """Rows of what code declares are made without a change."""
    server = chosen(overlay())
    tools = loading.after(published(server))["shop"].tools
    assert set(tools) == {"declared_tool"}


def test_two_rows_under_one_name_do_not_take_each_other_along(loading: Loading) -> None:
    Tool.objects.filter(name="stored_tool").update(published_identity=None)
    other = published(Tool(name="stored_tool2", kind="text", config=CONTENT))
    version = other.published
    assert version is not None
    twin = Tool.objects.create(name="twin", kind="text", config=CONTENT)
    Tool.objects.publish_contents({twin: {**version.read(), "name": "stored_tool"}})
    loading.after(twin)
    twin.delete()
    loading.catalogs.load_changes(EVERYTHING)
    fresh = Catalogs(loading.catalogs._registry)
    fresh.load_changes(EVERYTHING)
    assert "stored_tool" in fresh.by_slug["default"].tools
