"""What a query would give now to who looks at its form, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.utils.translation import gettext as _

from mcp_app.catalog.open_models import OpenModels
from mcp_app.interface.errors import ToolError
from mcp_app.interface.rights import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.query.config import Query
from mcp_app.kinds.query.description import input_schema, sentence
from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.kind import database_of
from mcp_app.kinds.query.reading import read
from mcp_app.kinds.query.rows import RowReader
from mcp_app.kinds.query.schema import GROUPS, SCHEMA
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.pools.statement_time import TimeIsUp, time_limit
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import local_date

ROWS: Final = 5
SECONDS: Final = 5
LARGEST: Final = 20_000
"""Bytes of the rows that are shown."""


def preview_of(
    config: JsonObject,
    opened: OpenModels,
    user: AbstractUser | AnonymousUser | None,
) -> Mapping[str, Any]:
    """Return the context of the panel: what is needed, whose rows, and the first ones.

    What clients may say counts as not said.
    """
    if schemas.compile(SCHEMA).violations(config):
        return {}
    query, problems = read(config, opened)
    if query is None:
        return {"problem": str(problems[0]) if config else ""}
    shown = {
        "sentence": sentence(query),
        "needs": query.demands.permissions,
        "scopes": _scopes(query),
        "parameters": input_schema(query)["properties"],
    }
    if user is None:
        return shown
    lacking = [each for each in query.demands.permissions if not user.has_perm(each)]
    if lacking:
        said = _("You may not see this data yourself (%(permissions)s).")
        return {**shown, "problem": said % {"permissions": ", ".join(lacking)}}
    return {**shown, **_answer(query, user)}


def _scopes(query: Query) -> list[tuple[str, str]]:
    """Return the title of each model with the function that says whose rows."""
    return [(each.title, each.rows_name) for each in query.models.values()]


def _answer(query: Query, user: AbstractUser | AnonymousUser) -> Mapping[str, Any]:
    request = AccessRequest.of_user(user)
    using = database_of(query)
    try:
        with time_limit(using, SECONDS):
            found, more = _found(query, Scopes(request, using))
    except TimeIsUp:
        return {"problem": _("This took longer than %d seconds.") % SECONDS}
    except ToolError as error:
        return {"problem": str(error)}
    except Exception as error:
        # A function of the site may raise anything.
        return {"problem": _("This failed: %(error)r") % {"error": error}}
    return {**_table(found), "more": more, "is_read": True}


def _table(found: Sequence[JsonObject]) -> Mapping[str, Any]:
    """Return the headings and cells that show rows or lines."""
    flat = [dict(_cells(each)) for each in found]
    headings = list(dict.fromkeys(name for each in flat for name in each))
    cells = [[(name, each.get(name, "")) for name in headings] for each in flat]
    return {"headings": headings, "rows": cells}


def _cells(row: JsonObject, before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, dict) and "rows" in value:
            below = [jsonrpc.write(each).decode() for each in value["rows"]]
            yield f"{before}{name}", "\n".join(below)
        elif isinstance(value, dict):
            yield from _cells(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", "" if value is None else visible(str(value), None)


def _found(query: Query, scopes: Scopes) -> tuple[list[JsonObject], bool]:
    today = local_date()
    defaults = {
        name: each.cleaned(each.default)
        for name, each in query.parameters.items()
        if each.default is not None
    }
    if query.answer == GROUPS:
        lines, _more = read_groups(query, scopes, defaults, today)
        return list(lines[:ROWS]), len(lines) > ROWS
    reader = RowReader(
        query=query,
        scopes=scopes,
        values=defaults,
        today=today,
        most=ROWS,
        size=LARGEST,
    )
    page = reader.page(None)
    return list(page.rows), page.next is not None
