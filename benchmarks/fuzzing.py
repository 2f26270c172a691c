"""`python -m benchmarks.fuzzing [--seconds S] [NAMES]`: random input for all parsers.

atheris (libFuzzer) looks for input that reaches further branches of a parser.  A parser
may refuse what it reads with its own error, and no other; and what it accepts must hold
what it promises.  The input that shows otherwise is printed, and kept in
results/fuzzing with all that was of interest: the next run begins with that.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.processes import ROOT

FOLDER: Final = ROOT / "results" / "fuzzing"
SECONDS: Final = 600
LONGEST: Final = 4_096
"""Bytes of an input."""
NAMES: Final = (
    *("json", "headers", "event-ids", "cursors"),
    *("state", "templates", "redirects", "oauth"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz each target in a process of its own; return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzzing")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each parser")
    parser.add_argument("--inside", choices=NAMES, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args(arguments)
    if options.inside:
        _fuzz(options.inside, options.seconds)
        return 0
    if unknown := set(options.names) - {*NAMES}:
        parser.error(f"There is no {', '.join(unknown)}; there are {', '.join(NAMES)}.")
    chosen = options.names or NAMES
    failed = [name for name in chosen if not _holds(name, options.seconds)]
    print(f"Failed: {', '.join(failed)}" if failed else "Nothing was found.")
    return int(bool(failed))


def _holds(name: str, seconds: int) -> bool:
    """Fuzz one target; print what it was given and what was found."""
    began = time.monotonic()
    inside = [sys.executable, "-m", "benchmarks.fuzzing", "--inside", name]
    ended = subprocess.run(
        [*inside, "--seconds", str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        check=False,
    )
    lines = ended.stdout.splitlines()
    runs = [line for line in lines if line.startswith("Done ")]
    told = runs[-1] if runs else "\n".join(lines[-40:])
    print(f"{name}: {time.monotonic() - began:.0f} s. {told}", flush=True)
    return ended.returncode == 0


def _fuzz(name: str, seconds: int) -> None:
    atheris: Any = importlib.import_module("atheris")
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["mcp_app.protocol", "mcp_app.streams"]):
        fuzzed = importlib.import_module("benchmarks.fuzzed")
    for number, text in enumerate(fuzzed.SEEDS.get(name, ())):
        (folder / f"seed-{number}").write_bytes(text.encode())
    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}"]
    artifacts = f"-artifact_prefix={FOLDER}/{name}-"
    atheris.Setup([sys.argv[0], *limits, artifacts, str(folder)], fuzzed.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
