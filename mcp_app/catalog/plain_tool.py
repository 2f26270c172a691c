"""What is known once of a tool whose calls need nothing unusual, for one revision.

Such a call is served by `transports.http.plain_call`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_app.interface.results import ToolOutput
from mcp_app.protocol.headers import is_sent_as_it_is
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.revisions import Revision

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import ToolEntry


@dataclass(frozen=True, slots=True)
class PlainTool:
    """An async tool without rules and mirrored parameters, ready to be called."""

    header: bytes
    """The value of `Mcp-Name`."""
    fits: Callable[[JsonObject], bool]
    """Whether arguments fit the schema as they are."""
    bind: Callable[[JsonObject], dict[str, object]]
    run: Callable[..., Awaitable[object]]
    convert: Callable[[object], ToolOutput]
    context: str | None
    """The parameter that takes the Context."""
    timeout: float | None
    """Seconds; None for the site's."""
    scalar: type | None
    """The type whose values are encoded without a check against the schema."""


def plain_tool(entry: ToolEntry, revision: Revision) -> PlainTool | None:
    """Return what calls of a tool need, None if they are not plain."""
    definition, runnable = entry.definition, entry.runnable
    if (
        not runnable.direct
        or definition.demands.rules
        or not is_sent_as_it_is(definition.name)
        or (revision.routing_headers and entry.mirrored)
    ):
        return None
    run: Any = runnable.run
    return PlainTool(
        header=definition.name.encode("ascii"),
        fits=entry.validator.is_valid,
        bind=runnable.bind,
        run=run,
        convert=runnable.convert,
        context=runnable.context,
        timeout=definition.timeout,
        scalar=entry.scalar if revision.structured_content else None,
    )
