"""Load from `wrk`, in which every single answer is compared with the right one."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import WrongAnswerError, result_of, send
from benchmarks.messages import FIRST_ID, IsRight, Request
from benchmarks.processes import Process

CONNECTIONS = 32
LATE_MS = 20

_SCRIPT = Path(__file__).with_name("wrk.lua")
_IDS_PER_RUN = 5_000_000
_first_ids = itertools.cycle(range(FIRST_ID, 10 * FIRST_ID, _IDS_PER_RUN))
"""A session refuses an id that is used twice, so runs share none."""


class LoadGeneratorMissingError(Exception):
    """`wrk` is not installed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A right response body, cut in two where the id stands."""

    before: bytes
    after: bytes
    headers: list[tuple[str, str]]
    """What came with it, for a floor to send as well; names in lower case."""

    @classmethod
    def learned(cls, port: int, request: Request, is_right: IsRight) -> Answer:
        """Ask the server once, and take its answer as the pattern if it is right."""
        reply = send(port, request, FIRST_ID)
        if not is_right(result_of(reply)):
            raise WrongAnswerError(f"A wrong result: {reply.body[:500]!r}.")
        return cls.cut(reply.body, reply.headers)

    @classmethod
    def cut(cls, body: bytes, headers: list[tuple[str, str]]) -> Answer:
        """Cut a body that holds the first id exactly once."""
        parts = body.split(b"%d" % FIRST_ID)
        if len(parts) != 2:
            raise WrongAnswerError(f"The id does not stand once in {body[:500]!r}.")
        return cls(parts[0], parts[1], headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one run measured: times in microseconds."""

    calls: int
    calls_per_second: float
    cpu_per_call: float
    kernel_per_call: float
    """The part of it in the kernel."""
    p50: float
    p99: float
    p999: float
    longest: float
    late: int
    """Calls that took longer than `LATE_MS`."""


def run(
    server: Process,
    request: Request,
    answer: Answer,
    *,
    seconds: float,
    connections: int = CONNECTIONS,
    pause_ms: int = 0,
) -> Sample:
    """Put load on the server and measure it; raise `WrongAnswerError` for any error.

    With a pause each connection waits that long before every request, which
    makes the rate connections x 1,000 / (pause + time of an answer) a second.
    """
    before, kernel = server.cpu_seconds(), server.kernel_seconds()
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), request.raw(server.port), answer)
        options = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s"]
        output = _wrk(server.port, folder, seconds, options, pause_ms)
    cpu, kernel = server.cpu_seconds() - before, server.kernel_seconds() - kernel
    numbers = _numbers(output)
    _refuse_errors(numbers, output)
    calls = int(numbers["requests"])
    return Sample(
        calls=calls,
        calls_per_second=calls / numbers["microseconds"] * 1e6,
        cpu_per_call=cpu / calls * 1e6,
        kernel_per_call=kernel / calls * 1e6,
        p50=numbers["p50"],
        p99=numbers["p99"],
        p999=numbers["p999"],
        longest=numbers["longest"],
        late=int(numbers["late"]),
    )


def _write(folder: Path, request: bytes, answer: Answer) -> None:
    (folder / "request").write_bytes(request)
    (folder / "before").write_bytes(answer.before)
    (folder / "after").write_bytes(answer.after)


def _wrk(
    port: int, folder: str, seconds: float, options: Sequence[str], pause_ms: int
) -> str:
    program = shutil.which("wrk")
    if program is None:
        raise LoadGeneratorMissingError("The benchmarks need wrk on the PATH.")
    script = ["-s", str(_SCRIPT), f"http://127.0.0.1:{port}/mcp"]
    arguments = [folder, str(next(_first_ids)), str(pause_ms)]
    finished = subprocess.run(
        [program, *options, "--timeout", "10s", *script, "--", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds + 60,
        check=False,
    )
    if finished.returncode != 0 or "\nNUMBERS " not in finished.stdout:
        raise WrongAnswerError(f"wrk failed: {finished.stdout}{finished.stderr}")
    return finished.stdout


def _numbers(output: str) -> dict[str, float]:
    line = output.partition("\nNUMBERS ")[2].partition("\n")[0]
    words = iter(line.split())
    return {name: float(value) for name, value in zip(words, words, strict=True)}


def _refuse_errors(numbers: dict[str, float], output: str) -> None:
    counted = ("wrong", "connect", "read", "write", "timeout")
    errors = {name: int(numbers[name]) for name in counted if numbers[name]}
    if errors or not numbers["requests"]:
        example = output.partition("\nEXAMPLE ")[2].strip()
        raise WrongAnswerError(
            f"Of {numbers['requests']:.0f} answers these failed: {errors}. "
            f"The first wrong one: {example}"
        )
