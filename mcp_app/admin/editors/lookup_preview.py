"""What a query would return now to the user of its form, and what it needs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

from django.contrib.auth.models import AbstractUser, AnonymousUser, Permission
from django.utils.translation import gettext as _

from mcp_app.admin.editors.lookup_values import Person
from mcp_app.admin.page.result import result_table
from mcp_app.catalog.open_models import OpenModels
from mcp_app.interface.errors import ToolError
from mcp_app.interface.principal import AccessRequest
from mcp_app.kinds.query.config import GROUPS, ROWS, Query, output_schema
from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.groups import read_groups
from mcp_app.kinds.query.kind import database_of
from mcp_app.kinds.query.reading import RowReader, read_query_config
from mcp_app.kinds.query.scoping import Scopes
from mcp_app.pools.statement_time import TimeIsUp, time_limit
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.site_time import local_date

MAX_ROWS: Final = 5
MAX_GROUPS: Final = 10
SECONDS: Final = 5
MAX_BYTES: Final = 20_000
"""Limits of a preview: rows, groups, seconds, and bytes of the rows."""
_turns: Final[defaultdict[Any, Lock]] = defaultdict(Lock)
"""A lock for each user: a process runs one preview per user at a time."""


def preview_of(
    config: JsonObject, opened: OpenModels, user: Person, *, may_read: bool = True
) -> Mapping[str, Any]:
    """Return the context of the panel: permissions, models, and the first rows.

    The config fits the `SCHEMA`, or is empty. Parameters have only their defaults.
    """
    if not config:
        return {}
    query, problems = read_query_config(config, opened)
    if query is None:
        return {"problem": str(problems[0])}
    needed = query.demands.permissions
    codenames = [each.partition(".")[2] for each in needed]
    permissions = Permission.objects.filter(codename__in=codenames)
    columns = permissions.values_list("content_type__app_label", "codename", "name")
    names = {f"{app}.{codename}": name for app, codename, name in columns}
    context = {
        "sentence": QueryText(config, opened).sentence(),
        # If a permission does not exist, show it as written.
        "needs": [names.get(each, each) for each in needed],
        "scopes": [*query.models.values()],
    }
    if user is None or not may_read:
        return context
    if any(not user.has_perm(each) for each in needed):
        lacking = ", ".join(each for each in needed if not user.has_perm(each))
        text = _("You may not see this data yourself (%(permissions)s).")
        return {**context, "problem": text % {"permissions": lacking}}
    begin = time.monotonic()
    if not _turns[user.pk].acquire(timeout=SECONDS):
        return {**context, "problem": _("Another preview of yours still runs.")}
    try:
        seconds_left = begin + SECONDS - time.monotonic()
        return {**context, **_answer(query, user, seconds_left)}
    finally:
        _turns[user.pk].release()


def _answer(
    query: Query, user: AbstractUser | AnonymousUser, seconds: float
) -> Mapping[str, Any]:
    using = database_of(query)
    scopes = Scopes(AccessRequest.of_user(user), using)
    begin = time.monotonic()
    try:
        with time_limit(using, seconds):
            rows = _first_rows(query, scopes)
    except TimeIsUp:
        return {"problem": _("This took longer than %d seconds.") % SECONDS}
    except ToolError as error:
        return {"problem": str(error)}
    except Exception as error:
        # A function of the site may raise anything.
        return {"problem": _("This failed: %(error)r") % {"error": error}}
    milliseconds = round(1000 * (time.monotonic() - begin))
    groups = query.answer == GROUPS
    promised = schemas.compile_schema(output_schema(query))
    for each in promised.violations({GROUPS if groups else ROWS: rows}, 1):
        text = _("This is not what clients are told of it. %(path)s: %(why)s")
        return {"problem": text % {"path": each.path, "why": each.message}}
    table = result_table({"rows": rows}, MAX_GROUPS)
    return {"table": table, "count": len(rows), "groups": groups, "ms": milliseconds}


def _first_rows(query: Query, scopes: Scopes) -> list[JsonObject]:
    today = local_date()
    defaults = {
        name: each.value_for_column(each.default)
        for name, each in query.parameters.items()
        if each.default is not None
    }
    if query.answer == GROUPS:
        lines, _more = read_groups(query, scopes, defaults, today)
        return list(lines[:MAX_GROUPS])
    limits = {"limit": MAX_ROWS, "size": MAX_BYTES}
    reader = RowReader(
        query=query, scopes=scopes, values=defaults, today=today, **limits
    )
    return list(reader.page_at_place(None).rows)
