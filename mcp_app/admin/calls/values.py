"""The kept values of calls: shown, or tried again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest

from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.admin.page.rights import has_right
from mcp_app.interface.log_secrets import BLOT
from mcp_app.interface.rules import visible
from mcp_app.models import Call, DefinitionRow
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

VALUES_RIGHT: Final = "view_values"
CALL: Final = "call"
"""The query parameter that names a call: *Try it* is filled with its values."""


def value_texts(call: Call) -> Sequence[tuple[str, str]]:
    """Return names and values as texts, "" for a value that was not kept (`BLOT`)."""
    return [
        (visible(name, None), "" if value == BLOT else _value_text(value))
        for name, value in _read_values(call).items()
    ]


def values_to_try(request: HttpRequest, row: DefinitionRow) -> JsonObject:
    """Return the kept values of the call that the URL names, {} if there are none."""
    key = request.GET.get(CALL, "")
    may_see = has_right(request, VALUES_RIGHT) and has_right(request, "view_call")
    if not may_see or not ROW_KEY.fullmatch(key):
        return {}
    calls = Call.objects.filter(pk=int(key), kind=row.kind_of_row, name=row.identity)
    values = {} if (call := calls.first()) is None else _read_values(call)
    return {name: value for name, value in values.items() if value != BLOT}


def _read_values(call: Call) -> dict[str, Any]:
    values = json.loads(call.arguments or "{}")
    return values if isinstance(values, dict) else {}


def _value_text(value: object) -> str:
    text = value if isinstance(value, str) else jsonrpc.pretty_text(value)
    return visible(text, None)
