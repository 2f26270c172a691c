"""What a person's clients see of a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser

from mcp_app.auth.permissions import rights_of
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.snapshot import Catalog
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.principal import ACCESS_TOKEN, Principal, Rights
from mcp_app.invalidation.change_reader import ChangeReader
from mcp_app.process.current import any_process
from mcp_app.process.loading import Catalogs
from mcp_app.process.runtime import Process

WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Visible:
    """What a person can use at a server; `resources` counts templates, too."""

    tools: Sequence[ToolDefinition]
    prompts: int
    resources: int
    events: int


def visible_to(user: AbstractBaseUser, slug: str) -> Visible | None:
    """Return what a user sees; None if the user may not use the server at all.

    Blocks.  Asks the `Process` of this OS process.  If there is none, or in the thread
    of its loop, which must not wait for itself, it reads all definitions.
    """
    principal = Principal(
        kind=ACCESS_TOKEN, user_id=str(user.pk), user_name=user.get_username()
    )
    process = any_process()
    if process is None or process.thread == threading.get_ident():
        catalogs = Catalogs(mcp)
        catalogs.load_changes(ChangeReader().read_changes())
        catalog = catalogs.by_slug.get(slug)
        if catalog is None:
            return None
        return _visible_of_catalog(
            catalog, rights_of(principal, slug, catalog.demands, mcp.rules)
        )
    work = asyncio.run_coroutine_threadsafe(
        _visible_at_process(process, principal, slug), process.loop
    )
    return work.result(WAIT_S)


async def _visible_at_process(
    process: Process, principal: Principal, slug: str
) -> Visible | None:
    await process.gate.wait_for_check()
    catalog = process.catalogs.by_slug.get(slug)
    if catalog is None:
        return None
    rights = await process.rights.find(principal, slug, catalog.demands)
    return _visible_of_catalog(catalog, rights)


def _visible_of_catalog(catalog: Catalog, rights: Rights) -> Visible | None:
    if rights.gone or not rights.meets_demands(catalog.server.demands):
        return None

    def allowed_definitions(name: str) -> list[Any]:
        definitions = (entry.definition for entry in catalog.offered[name])
        return [each for each in definitions if rights.meets_demands(each.demands)]

    return Visible(
        tools=allowed_definitions("tools"),
        prompts=len(allowed_definitions("prompts")),
        resources=len(allowed_definitions("resources"))
        + len(allowed_definitions("templates")),
        events=len(allowed_definitions("events")),
    )
