"""Runs the official conformance suite and reads its results."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.drill.programs import Program

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = ROOT / "node_modules" / ".bin" / "conformance"
NONE_EXPECTED: Final = Path(__file__).with_name("no_expected_failures.yml")
PATIENCE_MS: Final = 60_000
"""A scenario that takes longer fails."""

# server-<scenario>-2026-01-31T12-00-00-000Z
RESULT: Final = re.compile(
    r"(?:authorization-)?server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z/checks\.json"
)


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.id} {self.status} {self.reason}".rstrip()


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    text: str
    checks: Mapping[str, Sequence[Check]]


def missing() -> str:
    if not PROGRAM.exists():
        return "The conformance suite is not installed (npm ci)."
    return "" if _node() else "There is no node beside this Python."


def _node() -> str | None:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return shutil.which("node", path=beside)


def run(url: str, revision: str, results: Path) -> Outcome:
    """Run a revision's requirements; a warning in the scored set is a failure, too."""
    options = {
        "--url": url,
        "--requirements": revision,
        "--expected-failures": str(NONE_EXPECTED),
        "--output-dir": str(results),
        "--timeout": str(PATIENCE_MS),
    }
    with begun("server", options, results) as program:
        status = program.wait(900)
    return Outcome(status, program.output, checks_in(results, "server"))


def run_scenarios(url: str, scenarios: Sequence[str], results: Path) -> Outcome:
    """Run scenarios of extensions, which no revision requires, one after the other."""
    status, texts = 0, []
    options = {
        "--url": url,
        "--output-dir": str(results),
        "--timeout": str(PATIENCE_MS),
    }
    for scenario in scenarios:
        with begun("server", {**options, "--scenario": scenario}, results) as program:
            status = status or program.wait(300)
        texts.append(program.output)
    return Outcome(status, "\n".join(texts), checks_in(results, "server"))


def begun(command: str, options: Mapping[str, str], directory: Path) -> Program:
    given = [each for option in options.items() for each in option]
    return Program([str(_node()), PROGRAM, command, *given], cwd=directory)


def checks_in(results: Path, kind: str) -> dict[str, list[Check]]:
    checks = {}
    for path in sorted(results.glob(f"{kind}-*/checks.json")):
        named = RESULT.fullmatch(path.relative_to(results).as_posix())
        if named is None:
            raise ValueError(f"{path} is not named as the suite names its results.")
        checks[named["scenario"]] = [
            Check(each["id"], each["status"], each.get("errorMessage", ""))
            for each in json.loads(path.read_bytes())
        ]
    return checks
