"""Take away what enforces a demand, and see that a test which names it fails.

    MCP_TEST_DISABLE=L-HEAD-001 pytest ...    without what enforces that row
    python -m tests.disabling --seed 7        30 rows: each time a named test fails
    python -m tests.disabling L-HEAD-001 ...  the same for these rows

The column `enforced_by` of docs/coverage.csv says what, and what stands in its place:

    module:name returns None        a function or a method, which does nothing
    module:name returns True        ... which takes everything
    module:name returns argument    ... which changes nothing
    module:TABLE[key] removed       an entry of a mapping
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from random import Random
from types import CodeType, FunctionType
from typing import Any, Final

from tests.coverage_table import ROOT, Row, read_rows

VARIABLE: Final = "MCP_TEST_DISABLE"
QUIETLY: Final = ("-p", "no:cacheprovider", "-p", "no:randomly", "--no-header")
ENFORCED: Final = re.compile(
    r"(?P<module>[\w.]+):(?P<name>[\w.]+)"
    r"(?:\[(?P<key>[^\]]+)\] removed| returns (?P<value>None|True|argument))"
)


class WrongEnforcementError(Exception):
    """The column `enforced_by` names nothing that can be taken away."""


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


def _replacement(function: FunctionType, value: str) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function):
        return _nothing_later
    if inspect.isgeneratorfunction(function):
        return _nothing
    if inspect.iscoroutinefunction(function):
        return {"None": _later_none, "True": _later_true}[value]
    bound = "." in function.__qualname__
    return {"None": _none, "True": _true, "argument": _second if bound else _argument}[
        value
    ]


def _code(function: Callable[..., Any]) -> CodeType:
    code: CodeType = function.__code__
    return code


def found(enforced_by: str) -> tuple[Any, str, str]:
    """Return what is named, with its key or "", and the value that it is to return.

    Raises `WrongEnforcementError`.
    """
    named = ENFORCED.fullmatch(enforced_by)
    if named is None:
        raise WrongEnforcementError(f"{enforced_by!r} has another form.")
    what: Any = importlib.import_module(named["module"])
    try:
        for part in named["name"].split("."):
            what = inspect.getattr_static(what, part)
    except AttributeError:
        raise WrongEnforcementError(f"There is no {enforced_by}.") from None
    for wrapped in ("__func__", "fget"):
        what = getattr(what, wrapped, what)
    key = named["key"] or ""
    if key:
        if not (isinstance(what, Mapping) and key in what):
            raise WrongEnforcementError(f"There is no entry {enforced_by}.")
    elif not isinstance(what, FunctionType) or what.__code__.co_freevars:
        # Code that knows names from around it cannot be exchanged.
        raise WrongEnforcementError(f"{enforced_by} is no plain function.")
    return what, key, named["value"] or ""


def disable(enforced_by: str) -> None:
    """Take away what is named, for the rest of this process."""
    what, key, value = found(enforced_by)
    if key:
        del what[key]
        return
    what.__code__ = _code(_replacement(what, value))


def disable_what_the_environment_names() -> None:
    """Called wherever the drill's tables are: in pytest, and in servers of tests."""
    if row_id := os.environ.get(VARIABLE):
        (row,) = (each for each in read_rows() if each.id == row_id)
        disable(row.enforced_by)


# -- the proof -----------------------------------------------------------------------


def enforced(rows: list[Row]) -> list[Row]:
    """Return the rows that can be tried."""
    return [row for row in rows if row.enforced_by and row.tests]


def chosen(rows: list[Row], seed: int, count: int) -> list[Row]:
    """Return so many rows, of as many different enforcements as there are."""
    shuffled = Random(seed).sample(rows, len(rows))  # noqa: S311 - no secret
    seen: set[str] = set()
    first: list[Row] = []
    again: list[Row] = []
    for row in shuffled:
        (again if row.enforced_by in seen else first).append(row)
        seen.add(row.enforced_by)
    return [*first, *again][:count]


def _apart() -> dict[str, str]:
    """Return an environment in which pytest shares nothing with a run around it.

    No database, and no figures: what runs without its enforcement covers nothing.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_XDIST", "PYTEST_CURRENT", "COVERAGE_"))
    }


def failed(row: Row) -> str:
    """Run the tests of a row without what enforces it; return what failed first."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", *QUIETLY, *row.tests.split()],
        cwd=ROOT,
        env={**_apart(), VARIABLE: row.id},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    # 1: some tests failed; all else is no proof.
    if done.returncode != 1:
        return ""
    lines = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return lines[0] if lines else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    arguments = parser.parse_args()
    rows = enforced(read_rows())
    tried = [row for row in rows if row.id in arguments.ids] or chosen(
        rows, arguments.seed, arguments.count
    )
    green = 0
    for row in tried:
        test = failed(row)
        green += not test
        sys.stdout.write(f"{row.id:14} {row.enforced_by}\n    {test or 'GREEN'}\n")
        sys.stdout.flush()
    return min(green, 1)


if __name__ == "__main__":
    raise SystemExit(main())
