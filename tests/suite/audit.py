"""Look up whether holes are known in what the lock files pin: `make audit`.

    python -m tests.suite.audit [--osv-url URL] [--registry URL] [FOLDER]

pip-audit looks up the pins of `requirements*.txt`, and `npm audit` those of
`package-lock.json`.  Status:

0  no hole is known in any pin
1  a hole is known in a pin
2  nothing is pinned in the folder, or the arguments are wrong
3  no advisory database has answered for all pins: of those nothing is known

make itself ends with 2 whatever fails, and prints the status.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.suite.rooms import ROOT
from tests.suite.run import say

FINE: Final = 0
HOLES: Final = 1
NO_DATABASE: Final = 3

PIN: Final = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;#]+)", re.MULTILINE)
NPM: Final = Path(sys.executable).with_name("npm")
PATIENCE_S: Final = 900
SHOWN: Final = 300
"""Characters of what a program says when it fails."""


@dataclass(slots=True)
class Findings:
    """What is known of the pins of one kind of lock file."""

    what: str
    pins: int
    holes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Pins for which no database has answered."""
    reason: str = ""
    """What the program said instead of an answer."""

    @property
    def status(self) -> int:
        if self.holes:
            return HOLES
        return NO_DATABASE if self.unknown or self.reason else FINE

    def lines(self) -> Iterator[str]:
        """Yield what people read."""
        yield from self.holes
        if self.reason:
            yield (
                f"{self.what}: no advisory database has answered, so nothing is known"
                f" of {self.pins} pins. {self.reason}"
            )
        elif self.unknown:
            names = ", ".join(self.unknown)
            yield f"{self.what}: the advisory database knows nothing of {names}."
        elif not self.holes:
            yield f"{self.what}: no hole is known in {self.pins} pins."


# -- Python ---------------------------------------------------------------------------


def of_python(folder: Path, service: Sequence[str] = ()) -> Findings:
    """Ask pip-audit for the pins of `requirements*.txt`; `service` are its options."""
    files = sorted(folder.glob("requirements*.txt"))
    pins = {
        _pin(*each) for file in files for each in PIN.findall(file.read_text("utf-8"))
    }
    found = Findings("requirements*.txt", len(pins))
    command = [
        *(sys.executable, "-m", "pip_audit", "--format", "json", "--desc", "on"),
        *("--no-deps", "--disable-pip", "--progress-spinner", "off", *service),
        *(option for file in files for option in ("--requirement", str(file))),
    ]
    report, found.reason = _report(command, "dependencies", folder)
    note_answers(found, pins, report.get("dependencies", ()))
    return found


def note_answers(
    found: Findings, pins: set[str], answers: Iterable[Mapping[str, Any]]
) -> None:
    """Take what pip-audit reports of each pin: it ends well where it skips them all."""
    answered, skipped = set(), ""
    for each in answers:
        if "vulns" in each:
            pin = _pin(each["name"], each["version"])
            answered.add(pin)
            found.holes += [f"{pin}: {_hole(hole)}" for hole in each["vulns"]]
        else:
            skipped = str(each.get("skip_reason", ""))
    found.unknown = sorted(pins - answered)
    if not answered:
        found.reason = found.reason or skipped[:SHOWN]


def _pin(name: str, version: str) -> str:
    return f"{canonicalize_name(name)}=={Version(version)}"


def _hole(hole: Mapping[str, Any]) -> str:
    names = ", ".join([hole["id"], *sorted(hole.get("aliases", ()))])
    mended = ", ".join(hole.get("fix_versions", ())) or "no version"
    sentence = " ".join(str(hole.get("description", "")).split())[:SHOWN]
    return f"{names}, mended in {mended}. {sentence}"


# -- Node -----------------------------------------------------------------------------


def of_node(folder: Path, service: Sequence[str] = ()) -> Findings:
    """Ask `npm audit` for the pins of `package-lock.json`."""
    packages = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    pins = {
        f"{path.rpartition('node_modules/')[2]}@{each['version']}"
        for path, each in packages.items()
        if path and "version" in each
    }
    found = Findings("package-lock.json", len(pins))
    command = [
        *(str(NPM), "audit", "--json", "--package-lock-only"),
        # Each of these, set elsewhere, would let npm ask nobody and find no hole.
        *("--offline=false", "--include=dev", "--include=optional", "--include=peer"),
        *("--fetch-retries=1", "--fetch-retry-mintimeout=1000", *service),
    ]
    report, found.reason = _report(command, "vulnerabilities", folder)
    for name, each in report.get("vulnerabilities", {}).items():
        # What merely depends on another package names it as a text.
        found.holes += [
            f"{name} {hole['range']}: {hole['title']} ({hole['url']})"
            for hole in each["via"]
            if isinstance(hole, dict)
        ]
    return found


def _report(
    command: Sequence[str], member: str, folder: Path
) -> tuple[dict[str, Any], str]:
    """Return the report of a program, and "", or why there is none."""
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, str(error)[:SHOWN]
    try:
        report = json.loads(ended.stdout)
    except ValueError:
        report = None
    if isinstance(report, dict) and isinstance(report.get(member), list | dict):
        return report, ""
    said = report.get("message") if isinstance(report, dict) else None
    said = said or ended.stderr.strip().rpartition("\n")[2]
    return {}, str(said)[:SHOWN] or f"The program ended with {ended.returncode}."


def audit(
    folder: Path, osv_url: str | None = None, registry: str | None = None
) -> list[Findings]:
    """Return what is known of all pins of a folder."""
    found = []
    if any(folder.glob("requirements*.txt")):
        service = ["--vulnerability-service", "osv", "--osv-url", osv_url or ""]
        found.append(of_python(folder, service if osv_url else ()))
    if (folder / "package-lock.json").exists():
        found.append(of_node(folder, [f"--registry={registry}"] if registry else ()))
    return found


def status_of(found: Sequence[Findings]) -> int:
    """Return the status: a hole counts more than a database that is away."""
    each = {one.status for one in found}
    return next((status for status in (HOLES, NO_DATABASE) if status in each), FINE)


def main() -> int:
    """Return the status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--osv-url", help="an advisory service that speaks OSV")
    parser.add_argument("--registry", help="a registry that npm asks")
    options = parser.parse_args()
    found = audit(options.folder, options.osv_url, options.registry)
    if not found:
        parser.error(f"{options.folder} has no requirements*.txt and no lock of npm.")
    for each in found:
        for line in each.lines():
            say(line)
    return status_of(found)


if __name__ == "__main__":
    sys.exit(main())
