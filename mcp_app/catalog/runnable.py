"""What stands behind a definition, ready to be run by `server.invocation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Violation

Output = TypeVar("Output")

Style: TypeAlias = Literal["inline", "async", "sync"]
"""Inline code is ours: it neither waits nor blocks, and runs where it is called."""


class ArgumentsRefused(Exception):
    """Arguments that passed the schema cannot become the function's own types."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


class Gate(NamedTuple):
    """Of all calls behind one name, so many run at once in a process.

    Without a number these are half of the threads for user code, so that slow ones
    leave threads to others.
    """

    name: str
    places: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable(Generic[Output]):
    """A callable with the ways into it and out of it.

    `bind` turns JSON arguments into keyword arguments (raises `ArgumentsRefused`);
    `convert` turns what the callable returned into the output; `context` names the
    parameter that takes the Context, None where there is none.
    """

    run: Callable[..., object]
    style: Style
    bind: Callable[[JsonObject], dict[str, object]]
    convert: Callable[[object], Output]
    context: str | None = None
    types: Mapping[str, type] | None = None
    """Of all parameters, if `bind` passes values of exactly these types on."""
    atomic: bool | None = None
    database: bool = False
    gate: Gate | None = None
    ours: bool = False
    """Whether it is our own coroutine, which the loop awaits, whatever a site puts
    around its own."""
    needs_thread: bool = field(init=False)
    """Whether an async function must have a thread and connections of its own."""
    direct: bool = field(init=False)
    """Whether it may be awaited as it is, where the site puts nothing around it."""

    def __post_init__(self) -> None:
        needs_thread = bool(self.database or self.atomic)
        object.__setattr__(self, "needs_thread", needs_thread)
        own_way = self.gate is not None or self.ours
        direct = self.style == "async" and not needs_thread and not own_way
        object.__setattr__(self, "direct", direct)
