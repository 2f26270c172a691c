"""Tools that find others, for servers whose lists would be too long for a model.

`tools/list` then shows a few tools and these three.  A call of `call_tool` counts as a
call of the tool that it names: all rules for that call apply.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from mcp_app.catalog.definition_texts import SearchIndex, has_full_text
from mcp_app.catalog.snapshot import Catalog, Entry, Listing
from mcp_app.interface.definitions import OurTool, ToolHints
from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import CALL_READING_TOOL, CALL_TOOL, SEARCH_TOOLS
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.coercion import read_strings
from mcp_app.server.context import current_call
from mcp_app.server.finding import visible_listing
from mcp_app.server.request import Request

NAMES: Final = frozenset({SEARCH_TOOLS, CALL_READING_TOOL, CALL_TOOL})
USUAL: Final = 8
MAX_RESULTS: Final = 20
MAX_QUERY_LENGTH: Final = 200
INDEXES: Final = 8
"""Indexes that are kept for a catalog; callers who see the same tools share one."""

_CALLED: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "maxLength": 128,
            "description": "The tool's name.",
        },
        "arguments": {
            "type": "object",
            "description": "Its arguments, as its input schema says.",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}
_SEARCHED: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_QUERY_LENGTH,
            "description": "Words that say what the tool should do.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RESULTS,
            "default": USUAL,
            "description": "How many tools to return at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


def resolve_called_tool(request: Request) -> Request:
    """Return the request that a call of `call_tool` means; leave others unchanged.

    A transport calls this before it asks whether the request may run twice.
    """
    if request.method != "tools/call" or not request.catalog.server.uses_search:
        return request
    name, wrapped = request.params.get("name"), request.params.get("arguments")
    if name not in (CALL_TOOL, CALL_READING_TOOL) or not isinstance(wrapped, dict):
        return request
    wrapped = read_strings(_CALLED, wrapped)
    tool_name, arguments = wrapped.get("name"), wrapped.get("arguments", {})
    if not isinstance(tool_name, str) or not isinstance(arguments, dict):
        return request
    is_callable = request.sees(request.catalog.tools[name].definition)
    if tool_name in NAMES or wrapped.keys() - {"name", "arguments"} or not is_callable:
        return request
    entry = request.catalog.tools.get(tool_name)
    if (
        name == CALL_READING_TOOL
        and entry is not None
        and request.sees(entry.definition)
        and not entry.definition.only_reads
    ):
        return request
    params = {**request.params, "name": tool_name, "arguments": arguments}
    return request.with_changes(params=params, mirrors_headers=False)


async def _refuse_call(caller: str, *, arguments: JsonObject) -> ToolOutput:
    """Raise `ToolError`, which says why the named tool was not called."""
    name = arguments["name"]
    if name in NAMES:
        raise ToolError(f"{name} is called by its own name, not with {caller}.")
    raise ToolError(f"{name:.200} changes things: call it with {CALL_TOOL}.")


async def _run_search(*, arguments: JsonObject) -> ToolOutput:
    run = current_call.get()
    assert run is not None  # noqa: S101 - `run_user_code` has set it
    listing = visible_listing(run.request, run.request.catalog.offered["tools"])
    if not has_full_text():
        raise ToolError("This server cannot search. Tell the user.")
    index = await _index_of(run.request.catalog, listing)
    limit = int(arguments.get("limit", USUAL))
    positions, total = index.find_tools(arguments["query"], limit)
    entries = _searched_entries(listing)
    return _search_output(run.request, [entries[at] for at in positions], total)


_READS: Final = ToolHints(
    read_only=True, destructive=False, idempotent=True, open_world=False
)
SEARCHING_TOOLS: Final = (
    (
        OurTool(
            name=SEARCH_TOOLS,
            title="Search tools",
            description=(
                "This server has more tools than it lists. Find those that fit what you"
                " want to do; each comes with its input schema."
            ),
            input_schema=_SEARCHED,
            hints=_READS,
        ),
        _run_search,
    ),
    (
        OurTool(
            name=CALL_READING_TOOL,
            title="Call a tool that only reads",
            description=(
                "Call a tool that search_tools has found and that only reads"
                " (readOnlyHint is true)."
            ),
            input_schema=_CALLED,
            hints=_READS,
        ),
        partial(_refuse_call, CALL_READING_TOOL),
    ),
    (
        OurTool(
            name=CALL_TOOL,
            title="Call a tool",
            description="Call a tool that search_tools has found.",
            input_schema=_CALLED,
            hints=ToolHints(read_only=False, destructive=True, open_world=True),
        ),
        partial(_refuse_call, CALL_TOOL),
    ),
)


def _searched_entries(listing: Listing) -> list[Entry[Any, Any]]:
    """Return the tools for models, without those that only pages call."""
    return [entry for entry in listing if not entry.definition.app_only]


def _search_output(
    request: Request, entries: Sequence[Entry[Any, Any]], total: int
) -> ToolOutput:
    """Return the found tools as `tools/list` shows them, as many as fit."""
    bytes_left = request.adapters.limits.tool_result // 4
    fragments: list[orjson.Fragment] = []
    for entry in entries:
        text = entry.encoded_text(request.revision)
        bytes_left -= len(text)
        if bytes_left < 0 and fragments:
            break
        fragments.append(orjson.Fragment(text))
    structured: JsonObject = {"tools": fragments, "total": total}
    if len(fragments) < len(entries):
        structured["note"] = (
            f"Only {len(fragments)} fit into one answer. Search with other words, or"
            " with a smaller limit."
        )
    elif total > len(fragments):
        unlisted = total - len(fragments)
        structured["note"] = f"{unlisted} more fit. Search with more words."
    elif not total:
        structured["note"] = "No tool fits. Search with other words."
    return ToolOutput((), structured=structured)


_of_catalogs: WeakKeyDictionary[
    Catalog, tuple[OrderedDict[Listing, SearchIndex], asyncio.Lock]
] = WeakKeyDictionary()
"""The indexes of each catalog, each for a list that some callers see."""


async def _index_of(catalog: Catalog, listing: Listing) -> SearchIndex:
    """Return the index of a list; a thread makes the index at first use."""
    if catalog not in _of_catalogs:
        _of_catalogs[catalog] = OrderedDict(), asyncio.Lock()
    indexes, lock = _of_catalogs[catalog]
    index = indexes.get(listing)
    if index is None:
        async with lock:
            # Another search may have made it meanwhile.
            index = indexes.get(listing)
            if index is None:
                tools = [entry.definition for entry in _searched_entries(listing)]
                index = indexes[listing] = await asyncio.to_thread(SearchIndex, tools)
                while len(indexes) > INDEXES:
                    indexes.popitem(last=False)
    if listing in indexes:
        indexes.move_to_end(listing)
    return index
