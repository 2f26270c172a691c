"""The callable behind a definition, ready to be run by `server.invocation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import Violation
from mcp_app.protocol.skills import Skill

Output = TypeVar("Output")

QUICK_S: Final = 0.1
QUICK_CALLS: Final = 16

Style: TypeAlias = Literal["inline", "async", "sync"]
"""How a callable runs.  Inline code is ours: it never blocks, and runs at once."""


def leave_unconverted(value: Any) -> Any:
    """Return a result unchanged. Only the caller can convert a resource's, by URI."""
    return value


class ArgumentsRefused(Exception):
    """Arguments fit the schema, but cannot be converted to the function's types."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


class Gate(NamedTuple):
    """Limits how many calls with this `name` run at once in a process.

    Without `places` the limit is half of the threads for user code, so that slow
    calls leave threads to others.
    """

    name: str
    places: int | None = None


class Pace:
    """Tells whether a function is quick: its last calls took under `QUICK_S` each."""

    __slots__ = ("_doubts",)

    def __init__(self) -> None:
        self._doubts = 1
        """Calls that must be quick before it counts as quick."""

    @property
    def is_quick(self) -> bool:
        """Whether it was quick since its first call, or for the last `QUICK_CALLS`."""
        return self._doubts == 0

    def note_duration(self, seconds: float) -> None:
        """Note how long a call took."""
        if seconds >= QUICK_S:
            self._doubts = QUICK_CALLS
        elif self._doubts > 0:
            self._doubts -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable(Generic[Output]):
    """A callable, with the functions that convert its arguments and its result.

    `bind` turns JSON arguments into keyword arguments, or raises `ArgumentsRefused`.
    `convert` turns the result into the output.  `context` names the parameter that
    takes the Context; None if there is none.
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
    """Whether it is our own coroutine function: the loop awaits it without the site's
    wrappers."""
    judged: Set[str] | None = None
    """If this is set, the callable checks the values of arguments, and the schema only
    describes them.  It holds the parameters of which the callable checks null, too."""
    skill: Skill | None = None
    """The skill that it serves, if any; its argument is then a `path`."""
    pace: Pace = field(default_factory=Pace, compare=False)
    """Tells how quick its calls were in threads of this process."""
    needs_thread: bool = field(init=False)
    """Whether an async function must have a thread and connections of its own."""
    direct: bool = field(init=False)
    """Whether the loop may await it directly, if the site has no wrappers."""

    def __post_init__(self) -> None:
        needs_thread = bool(self.database or self.atomic)
        object.__setattr__(self, "needs_thread", needs_thread)
        is_special = self.gate is not None or self.ours
        direct = self.style == "async" and not needs_thread and not is_special
        object.__setattr__(self, "direct", direct)
