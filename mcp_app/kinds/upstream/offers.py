"""The tools of another MCP server as offers; a `bar` says why one cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.egress.sites import Site
from mcp_app.interface.rules import text_problem, visible
from mcp_app.kinds.openapi.reading import MAX_NAME_LENGTH, Names, Offer
from mcp_app.kinds.upstream.kind import MAX_TOOL_NAME
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.json_types import JsonObject

HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
}
DEFAULT_HINTS: Final = {"read_only": False, "destructive": True}
MAX_SUMMARY_LENGTH: Final = 200
MAX_DESCRIPTION_LENGTH: Final = 4_000
"""In characters; if a longer description is cut, a remark says so."""
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def offers_of(tools: Iterable[Any], site: Site) -> list[Offer]:
    """Return an offer for each tool that a server lists, in its order.

    If two tools have one name, the first counts.  Other values are left out.
    """
    names, offers = Names(), dict[str, Offer]()
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and name and name not in offers:
            offers[name] = _offer_of(tool, name, site, names)
    return [*offers.values()]


def _offer_of(tool: JsonObject, name: str, site: Site, names: Names) -> Offer:
    annotations, execution = _object(tool, "annotations"), _object(tool, "execution")
    base = f"{site.key}_{_UNUSUAL.sub('_', name)}"[:MAX_NAME_LENGTH]
    schema: Any = tool.get("inputSchema")
    remarks = []
    output_schema = _object(tool, "outputSchema")
    if output_schema and (problem := _schema_problem(output_schema)):
        remarks.append(_("its output schema is left out: %s") % problem)
        output_schema = {}
    description = _text(tool, "description")
    if len(description) > MAX_DESCRIPTION_LENGTH:
        remarks.append(
            _("its description is cut: it has more than %d characters")
            % MAX_DESCRIPTION_LENGTH
        )
    hints = _hints_of(annotations)
    if hints == DEFAULT_HINTS and annotations.get("destructiveHint") is None:
        remarks.append(_("the server does not say what it changes"))
    if len(name) > MAX_TOOL_NAME or text_problem(name):
        bar = _("its name has more than %d characters, or hidden ones") % MAX_TOOL_NAME
    elif execution.get("taskSupport") == "required":
        bar = _("it runs as a task only")
    else:
        bar = _schema_problem(schema)
    return Offer(
        # The mark “ !” keeps it apart from the key of a tool that can be used.
        key=f"{visible(name)[:MAX_SUMMARY_LENGTH]} !" if bar else name,
        name=names.reserve_name(base),
        summary=(_text(tool, "title") or _text(annotations, "title"))[
            :MAX_SUMMARY_LENGTH
        ],
        description=description[:MAX_DESCRIPTION_LENGTH],
        input_schema={} if bar else schema,
        output_schema=output_schema,
        hints=hints,
        kind="upstream",
        config={"site": site.key, "tool": name[:MAX_TOOL_NAME]},
        remarks=tuple(remarks),
        bar=bar,
    )


def _hints_of(annotations: JsonObject) -> dict[str, bool]:
    stated = {name: annotations.get(hint) for name, hint in HINTS.items()}
    hints = {name: value for name, value in stated.items() if type(value) is bool}
    # Missing hints have the defaults of the specification (ToolAnnotations).
    defaults = {} if hints.get("read_only") else DEFAULT_HINTS
    return {**defaults, **hints}


def _schema_problem(schema: Any) -> str:
    """Return why a schema cannot be used; "" if it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return _("its schema is not that of an object")
    try:
        schemas.check_schema(schema)
        mirrored_parameters(schema)
    except ValueError as error:
        return visible(str(error), MAX_SUMMARY_LENGTH)
    text = jsonrpc.write(schema).decode()
    if "\\u0000" in text:
        return _("its schema has a character that no database stores")
    return text_problem(text, lines=True) or ""


def _object(value: JsonObject, name: str) -> JsonObject:
    member = value.get(name)
    return member if isinstance(member, dict) else {}


def _text(value: JsonObject, name: str) -> str:
    member = value.get(name)
    return member.replace("\0", "") if isinstance(member, str) else ""
