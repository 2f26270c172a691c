"""What stands behind a definition, ready to be run by `server.invocation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Violation
from mcp_app.protocol.skills import Skill

Output = TypeVar("Output")

QUICK_S: Final = 0.1
QUICK_CALLS: Final = 16

Style: TypeAlias = Literal["inline", "async", "sync"]
"""Inline code is ours: it neither waits nor blocks, and runs where it is called."""


def leave_unconverted(value: object) -> object:
    """Return what a resource gave: only the caller knows the URI."""
    return value


class ArgumentsRefused(Exception):
    """Arguments that passed the schema cannot become the function's own types."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


class Gate(NamedTuple):
    """Limits the calls behind one name that run at once in a process.

    Without a number these are half of the threads for user code, so that slow ones
    leave threads to others.
    """

    name: str
    places: int | None = None


class Pace:
    """Whether a function is quick: its last calls took less than `QUICK_S` each."""

    __slots__ = ("_doubts",)

    def __init__(self) -> None:
        self._doubts = 1
        """Calls that must be quick before it counts as quick."""

    @property
    def is_quick(self) -> bool:
        """Whether it was so for `QUICK_CALLS`, or for all since its first call."""
        return self._doubts == 0

    def note_duration(self, seconds: float) -> None:
        """Note how long a call took."""
        if seconds >= QUICK_S:
            self._doubts = QUICK_CALLS
        elif self._doubts > 0:
            self._doubts -= 1


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
    """The types of all parameters, if `bind` passes such values on as they are."""
    atomic: bool | None = None
    database: bool = False
    gate: Gate | None = None
    ours: bool = False
    """Whether it is our own coroutine, which the loop awaits, whatever a site puts
    around its own."""
    judged: Set[str] | None = None
    """If it decides itself which values fit: the parameters whose null it judges, too.
    The schema then only describes values."""
    skill: Skill | None = None
    """What it serves, if it is the resource of a skill: its argument is a `path`."""
    pace: Pace = field(default_factory=Pace, compare=False)
    """How quick it was in a thread, in this process."""
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
