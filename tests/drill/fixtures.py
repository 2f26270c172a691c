"""Writes the fixture rows: again and again, from several processes, to one result."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from mcp_app import mcp
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.kinds import complete_definition, serving_problems, usable_kinds
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.models.definitions import DefinitionRow
from tests.drill.rows import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Row, plain_tool

AT_ONCE = 500


def write_fixtures(plain_tools: int = 0) -> None:
    """Write what is missing or different, and so many plain tools after it.

    A row that is as it should be is not saved: that would be a change, which the
    processes that already serve it announce.
    """
    with transaction.atomic():
        _open_server()
        _write(Tool, "name", TOOLS)
        _write(Resource, "uri", RESOURCES)
        _write(ResourceTemplate, "uri_template", TEMPLATES)
        _write(Prompt, "name", PROMPTS)
        _add_plain_tools(plain_tools)


def _open_server() -> None:
    server = Server.objects.filter(slug="default").first() or Server(slug="default")
    if server.access != "public":
        server.access = "public"
        server.title = "Drill"
        # Clients are to ask for a second page.
        server.page_size = 100
        server.full_clean()
        server.save()
    Server.objects.publish([server])


def _write(model: type[DefinitionRow], identity: str, fixtures: Sequence[Row]) -> None:
    identities = [fixture[identity] for fixture in fixtures]
    there = model._default_manager.filter(**{f"{identity}__in": identities})
    rows = {getattr(row, identity): row for row in there}
    for position, fixture in enumerate(fixtures):
        row = rows.setdefault(fixture[identity], model())
        _save_if_different(row, {"position": position, **fixture})
    model.rows().publish([rows[each] for each in identities])


def _save_if_different(row: DefinitionRow, columns: Row) -> None:
    if all(getattr(row, name) == value for name, value in columns.items()):
        return
    for name, value in columns.items():
        setattr(row, name, value)
    row.full_clean()
    _check_kind(row)
    row.save()


def _check_kind(row: DefinitionRow) -> None:
    """Demand what the admin's forms demand."""
    full = complete_definition(stored_definition(row), usable_kinds(mcp))
    found = serving_problems(full.definition, full.kind, full.config, full.uploads)
    if found:
        sentences = " ".join(problem.message for problem in found)
        raise ValueError(f"The fixture {row.name!r} cannot be served: {sentences}")


def _add_plain_tools(count: int) -> None:
    wanted = map(plain_tool, range(1, count + 1))
    there = set(
        Tool.objects.filter(name__startswith="plain_").values_list("name", flat=True)
    )
    missing = [columns for columns in wanted if columns["name"] not in there]
    Tool.objects.bulk_create(Tool(**columns) for columns in missing)
    names = [columns["name"] for columns in missing]
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        Tool.objects.publish(Tool.objects.filter(name__in=some))
