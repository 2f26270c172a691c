"""Take away what enforces a demand, in the process that asks for it.

    MCP_TEST_DISABLE=L-HEAD-001 pytest ...    without the guard of that demand

tests/conformance/guards.py lists the guards, and `python -m tests.conformance.proving`
sees that a test fails without each.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from types import CodeType, FunctionType
from typing import Any, Final, Literal, cast

VARIABLE: Final = "MCP_TEST_DISABLE"


class WrongGuardError(Exception):
    """The guard is nothing that can be taken away."""


# -- what stands in the place of a function ----------------------------------------
# Its code is replaced, not its name: whoever has imported it has the new one, too.


def _none(*arguments: Any, **named: Any) -> Any:
    return None


def _true(*arguments: Any, **named: Any) -> Any:
    return True


def _argument(*arguments: Any, **named: Any) -> Any:
    return arguments[0] if arguments else next(iter(named.values()))


def _second(*arguments: Any, **named: Any) -> Any:
    return arguments[1] if len(arguments) > 1 else next(iter(named.values()))


async def _later_none(*arguments: Any, **named: Any) -> Any:
    return None


async def _later_true(*arguments: Any, **named: Any) -> Any:
    return True


def _nothing(*arguments: Any, **named: Any) -> Iterator[Any]:
    yield from ()


async def _nothing_later(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
    nobody: tuple[Any, ...] = ()
    for each in nobody:
        yield each


Value = None | Literal[True, "argument"]


def _replacements(function: FunctionType) -> dict[Value, Callable[..., Any]]:
    if inspect.isasyncgenfunction(function):
        return {None: _nothing_later}
    if inspect.isgeneratorfunction(function):
        return {None: _nothing}
    if inspect.iscoroutinefunction(function):
        return {None: _later_none, True: _later_true}
    bound = "." in function.__qualname__
    return {None: _none, True: _true, "argument": _second if bound else _argument}


# -- guards --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Guard:
    """A function, a method or a property, which is to do nothing but return a value.

    The value is None, True (it takes everything), or its first argument, which it does
    not change; what yields yields nothing instead of None.  `named` are the demands.
    """

    what: Callable[..., Any] | property
    named: str
    _: KW_ONLY
    returns: Value = None

    @property
    def demands(self) -> list[str]:
        return self.named.split()

    def __str__(self) -> str:
        function = self._function()
        name = f"{function.__module__}.{function.__qualname__}"
        return f"{name} returns {self.returns}"

    def check(self) -> None:
        self._replacement()

    def disable(self) -> None:
        """Take it away for the rest of this process; raise `WrongGuardError`."""
        code: CodeType = self._replacement().__code__
        self._function().__code__ = code

    def _function(self) -> FunctionType:
        what: Any = self.what
        for wrapped in ("__func__", "fget"):
            what = getattr(what, wrapped, what)
        if not isinstance(what, FunctionType) or what.__code__.co_freevars:
            # Code that knows names from around it cannot be exchanged.
            raise WrongGuardError(f"{self.what!r} is no plain function.")
        return what

    def _replacement(self) -> Callable[..., Any]:
        known = _replacements(self._function())
        if self.returns not in known:
            raise WrongGuardError(f"Nothing of that kind stands for: {self}.")
        return known[self.returns]


@dataclass(frozen=True, eq=False, slots=True)
class GuardEntry:
    table: Mapping[str, Any]
    key: str
    named: str

    @property
    def demands(self) -> list[str]:
        return self.named.split()

    def __str__(self) -> str:
        return f"entry {self.key!r} removed"

    def check(self) -> None:
        if self.key not in self.table:
            raise WrongGuardError(f"There is no entry {self.key!r}.")

    def disable(self) -> None:
        self.check()
        del cast(dict[str, Any], self.table)[self.key]


AnyGuard = Guard | GuardEntry


def all_guards() -> tuple[AnyGuard, ...]:
    """Import what is guarded, which is most of the app: Django has to be set up."""
    from tests.conformance.guards import GUARDS  # noqa: PLC0415 - see above

    return GUARDS


def disable_what_the_environment_names() -> None:
    """Called wherever the drill's tables are: in pytest, and in servers of tests."""
    if demand := os.environ.get(VARIABLE):
        (guard,) = (each for each in all_guards() if demand in each.demands)
        guard.disable()
