"""A working copy beside what is published: its demands, its place, and stops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async

from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import KindError
from mcp_app.models import Stop, Tool
from mcp_app.models.stops import By, Scope
from mcp_app.process.runtime import Process
from mcp_app.workbench.trying.offer import WorkingCopy, servers_for
from tests.published import end_stops, published, stopped, stops

CONFIG: Final = json.dumps({"content": [{"type": "text", "text": "Hello."}]})


class Rows:
    """Makes tools, and what their working copies change in a server's catalog."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.made: list[Tool] = []

    async def tool(self, **columns: Any) -> Tool:
        given = {"name": "hello", "kind": "text", "tags": "private", "config": CONFIG}
        row = await sync_to_async(published)(Tool(**{**given, **columns}))
        self.made.append(row)
        await self.process.gate.wait_for_check()
        return row

    async def overlaid(self, row: Tool, slug: str = "private", **edits: Any) -> Catalog:
        for name, value in edits.items():
            setattr(row, name, value)
        await sync_to_async(row.save)()
        copy = await sync_to_async(WorkingCopy.of_definition_row)(row)
        catalogs = self.process.catalogs
        return copy.catalog_overlay(catalogs)(catalogs.by_slug[slug])

    async def stop(self, make: Callable[[], object]) -> None:
        await sync_to_async(make)()
        await self.process.gate.wait_for_check()


@pytest.fixture
async def rows(process: Process) -> AsyncIterator[Rows]:
    before = await sync_to_async(stops)()
    rows = Rows(process)
    await process.gate.wait_for_check()
    yield rows
    for row in rows.made:
        await sync_to_async(row.delete)()
    await sync_to_async(end_stops)(before)
    await process.gate.wait_for_check()


@pytest.mark.parametrize("slug", ["private", "pages"])
async def test_no_unpublished_edit_takes_a_demand_away(rows: Rows, slug: str) -> None:
    """Also at a server that does not offer the published version."""
    row = await rows.tool(permission="shop.view_a", groups="one")
    catalog = await rows.overlaid(row, slug, permission="shop.view_b", groups="")
    demands = catalog.tools["hello"].definition.demands
    assert set(demands.permissions) == {"shop.view_a", "shop.view_b"}
    assert demands.groups == (frozenset({"one"}),)
    catalog = await rows.overlaid(row, slug, permission="")
    demands = catalog.tools["hello"].definition.demands
    assert demands.permissions == ("shop.view_a",)


async def test_the_process_goes_on_with_what_is_published(rows: Rows) -> None:
    row = await rows.tool()
    catalog = await rows.overlaid(row, description="New", read_only=True)
    assert catalog.tools["hello"].definition.description == "New"
    served = rows.process.catalogs.by_slug["private"]
    assert served.tools["hello"].definition.description == ""
    assert "hello" in [each.identity for each in served.offered["tools"]]


async def test_a_new_name_stands_instead_of_the_old_one(rows: Rows) -> None:
    row = await rows.tool()
    catalog = await rows.overlaid(row, name="goodbye")
    names = [each.identity for each in catalog.offered["tools"]]
    assert "goodbye" in names
    assert "hello" not in names
    assert "goodbye" not in rows.process.catalogs.by_slug["private"].tools


async def test_a_stop_of_its_own_does_not_hold_it(rows: Rows) -> None:
    row = await rows.tool()
    await rows.stop(lambda: stopped(row))
    assert "hello" not in rows.process.catalogs.by_slug["private"].tools
    catalog = await rows.overlaid(row)
    assert "hello" in catalog.tools
    assert not catalog.stopped.get("tools")


async def test_a_stop_of_all_changes_holds_it(rows: Rows) -> None:
    row = await rows.tool()
    stop = lambda: Stop.objects.make(Scope.CHANGES, by=By("lee"))  # noqa: E731
    await rows.stop(stop)
    catalog = await rows.overlaid(row)
    assert "hello" not in catalog.tools
    assert "hello" in catalog.stopped["tools"]
    catalog = await rows.overlaid(row, read_only=True)
    assert "hello" in catalog.tools


async def test_what_cannot_be_served_says_why(rows: Rows) -> None:
    row = await rows.tool()
    with pytest.raises(KindError, match="there_is_none"):
        await rows.overlaid(
            row, kind="function", config='{"function": "there_is_none"}'
        )


async def test_servers_that_offer_it_come_first(rows: Rows) -> None:
    row = await rows.tool(tags="paged")
    slugs = await slugs_for(row)
    assert slugs.index("pages") < slugs.index("private")
    assert slugs.index("default") < slugs.index("private")
    # It lets nobody in.
    assert slugs.index("pages") < slugs.index("closed") < slugs.index("private")


async def test_a_server_that_lets_the_person_in_comes_first(rows: Rows) -> None:
    """Public ones come after it: they ask nobody who they are."""
    row = await rows.tool()
    everywhere = await slugs_for(row)
    assert everywhere.index("private") < everywhere.index("default")
    elsewhere = await slugs_for(row, lambda server: server.slug != "private")
    assert elsewhere.index("default") < elsewhere.index("private")


async def slugs_for(
    row: Tool, admits: Callable[[ServerDefinition], bool] = lambda server: True
) -> list[str]:
    return [each.slug for each in await sync_to_async(servers_for)(row, admits)]
