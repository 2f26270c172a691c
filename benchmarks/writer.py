"""What the call log takes, thread by thread: `python -m benchmarks.writer [ROUNDS]`.

Serves `drill_add` with writers that do only a part of the work, and prints the
processor time of a call: of the loop's thread, and of all others.  Disturbances only
add to it, so the lower quartile of the rounds counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from hashlib import pbkdf2_hmac
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from benchmarks.awake import awake
from benchmarks.measuring import Subject
from benchmarks.messages import call, is_sum
from benchmarks.postgres import cluster
from benchmarks.processes import Process, free_port, serving

ROUNDS: Final = 24
SECONDS: Final = 1.0
BUSY_S: Final = 8e-6
"""How long the two busy threads work for each call."""

Write = Callable[[Any], object]


def main(rounds: int = ROUNDS) -> None:
    """Measure all in turn and print a line for each."""
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        subjects = {
            name: _asked(stack, name, database.url if name == "PostgreSQL" else "")
            for name in VARIANTS
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in subjects}
        order = list(subjects.items())
        with awake():
            for _ in range(rounds):
                for name, subject in order:
                    times[name].append(_times(subject))
                order.reverse()
    print("loop  others  together: us a call")
    for name, found in times.items():
        loop, others = (quantiles(each, n=4)[0] for each in zip(*found, strict=True))
        both = quantiles(map(sum, found), n=4)[0]
        print(f"{loop:6.1f} {others:6.1f} {both:6.1f}  {name}")
    print(f"The load was {os.getloadavg()[0]:.1f}.")


def _asked(stack: ExitStack, variant: str, database: str) -> Subject:
    port = free_port()
    environment = {"PORT": str(port), "SERVER": "uvicorn", "VARIANT": variant}
    environment["MCP_AUDIT"] = "off" if variant == "no call log" else "batched"
    if database:
        environment["DATABASE_URL"] = database
    command = [sys.executable, "-m", "benchmarks.writer", "serve"]
    server = stack.enter_context(serving(command, port, environment))
    subject = Subject.asked(server, call("drill_add"), is_sum)
    subject.sample(SECONDS)
    return subject


def _times(subject: Subject) -> tuple[float, float]:
    """Return the microseconds of a call: of the loop's thread, and of the others."""
    before = _threads(subject.server)
    calls = subject.sample(SECONDS).calls
    loop, others = (
        (now - then) / calls / 1e3
        for then, now in zip(before, _threads(subject.server), strict=True)
    )
    return loop, others


def _threads(server: Process) -> tuple[int, int]:
    """Return the nanoseconds of the loop's thread, and of all others so far."""
    times = {
        int(task.name): int((task / "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{server.pid}/task").iterdir()
    }
    loop = times[server.pid]
    return loop, sum(times.values()) - loop


# -- the server ---------------------------------------------------------------------


def _serve() -> int:
    from tests.drill import serve  # noqa: PLC0415 - the other process needs no Django

    return serve.main(_set_up)


def _set_up() -> None:
    import django  # noqa: PLC0415

    django.setup()
    from mcp_app.audit import call_log  # noqa: PLC0415

    work = VARIANTS[os.environ["VARIANT"]]
    if work is None:
        return

    def write(batch: Any) -> int:
        work(batch)
        return time.time_ns() // 1_000_000 - int(time.monotonic() * 1_000)

    async def write_on_the_loop(log: Any, batch: Any) -> None:
        log._written_so_far = log._taken_so_far

    if work is _nothing:
        vars_of_class: Any = call_log.CallLog
        vars_of_class._write = write_on_the_loop
    else:
        vars(call_log)["write"] = write


def _nothing(batch: Any) -> None:
    """Stand for a writer without a thread: the loop drops the calls."""


def _hash(batch: Any) -> None:
    """Work as long as a writer, without the interpreter's lock."""
    end = time.thread_time() + len(batch.records) * BUSY_S
    while time.thread_time() < end:
        pbkdf2_hmac("sha256", b"", b"", 1_000)


def _count(batch: Any) -> None:
    """Work as long as a writer, with the interpreter's lock."""
    end = time.thread_time() + len(batch.records) * BUSY_S
    while time.thread_time() < end:
        for _ in range(1_000):
            pass


def _make_rows(batch: Any) -> None:
    """Make the text of the rows, and drop it."""
    from mcp_app.audit.writing import _reckoned  # noqa: PLC0415
    from mcp_app.models.call_statements import _lines  # noqa: PLC0415

    rows, _ = _reckoned(batch, 0)
    "".join(_lines(rows))


VARIANTS: Final[Mapping[str, Write | None]] = {
    "no call log": None,
    "the loop collects calls and drops them; no thread": _nothing,
    "a thread counts for as long as a writer works": _count,
    "the same without the interpreter's lock": _hash,
    "a thread makes the rows and drops them": _make_rows,
    "PostgreSQL": None,
    "SQLite": None,
}


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        sys.exit(_serve())
    main(*map(int, sys.argv[1:2]))
