"""What is known once of a tool whose calls need nothing unusual, for one revision.

Such a call is served by `transports.http.plain_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_app.catalog.outputs import scalar_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.scalars import SCALARS
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.results import ToolOutput
from mcp_app.protocol.headers import is_sent_as_it_is
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Validator


@dataclass(frozen=True, slots=True)
class PlainTool:
    """A tool without rules and mirrored parameters, ready to be called."""

    names: tuple[str, ...]
    types: tuple[type, ...] | None
    """Arguments of exactly these names and types fit, and are bound as they are."""
    fits: Callable[[JsonObject], bool]
    """Whether arguments fit the schema as they are."""
    bind: Callable[[JsonObject], dict[str, object]]
    run: Callable[..., Any]
    convert: Callable[[object], ToolOutput]
    context: str | None
    """The parameter that takes the Context."""
    timeout: float | None
    """Seconds; None for the site's."""
    scalar: type | None
    """The type whose values need no conversion and no check: `scalar_members`."""

    def convert_other(self, output: object) -> object:
        """Convert an output, unless it is of the scalar type."""
        return output if type(output) is self.scalar else self.convert(output)


def plain_tool(
    definition: ToolDefinition,
    runnable: Runnable[ToolOutput],
    validator: Validator,
    scalar: type | None,
) -> PlainTool | None:
    """Return what calls of a tool need, None if they are not plain.

    Its parameters stand in no headers; `scalar` is the type whose values surely fit
    its output schema.
    """
    if (
        runnable.style == "inline"
        or runnable.ours
        or definition.demands.rules
        or not is_sent_as_it_is(definition.name)
    ):
        return None
    types = _sufficient(runnable.types, definition.input_schema)
    return PlainTool(
        names=() if types is None else tuple(types),
        types=None if types is None else tuple(types.values()),
        fits=validator.is_valid,
        bind=runnable.bind,
        run=runnable.run,
        convert=runnable.convert,
        context=runnable.context,
        timeout=definition.timeout,
        scalar=scalar if runnable.convert is scalar_output else None,
    )


def _sufficient(
    types: Mapping[str, type] | None, schema: Mapping[str, Any]
) -> Mapping[str, type] | None:
    """Return the types if a value of each is all that a schema asks for."""
    if types is None or not schema.keys() <= _ONLY_MEMBERS:
        return None
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not types.keys() >= set(
        schema.get("required", ())
    ):
        return None
    for name, kind in types.items():
        shape = properties.get(name, {"not": {}})
        if not shape.keys() <= _ONLY_TYPE or shape.get("type") != SCALARS[kind][0]:
            return None
    return types


_ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples"})
_ONLY_TYPE: Final = _ANNOTATIONS | {"type"}
_ONLY_MEMBERS: Final = _ONLY_TYPE | {"properties", "required", "additionalProperties"}
