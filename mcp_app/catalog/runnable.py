"""What stands behind a definition, ready to be run by `server.invocation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from mcp_app.protocol.jsonrpc import JsonObject
from mcp_app.protocol.schemas import Violation

Output = TypeVar("Output")

Style: TypeAlias = Literal["inline", "async", "sync"]
"""Inline code is ours: it neither waits nor blocks, and runs where it is called."""


class ArgumentsRefused(Exception):
    """Arguments that passed the schema cannot become the function's own types."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


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
    atomic: bool | None = None
    database: bool = False

    @property
    def needs_thread(self) -> bool:
        """Whether an async function must have a thread and connections of its own."""
        return bool(self.database or self.atomic)
