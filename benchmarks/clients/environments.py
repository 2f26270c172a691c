"""An environment of its own for each client: a virtual one, or a folder of node's.

What was installed stays in `.clients/`; the next run uses it, unless the requirements
have changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.clients.catalog import NODE, Client
from benchmarks.processes import ROOT

CACHE: Final = ROOT / ".clients"
DRIVERS: Final = Path(__file__).parent / "drivers"
NODE_PROGRAM: Final = Path(sys.executable).with_name("node")
NPM: Final = Path(sys.executable).with_name("npm")
INSTALL_S: Final = 1_200
REASON: Final = 200
"""Characters of the reason why something was not installed."""
NO_REASON: Final = ("npm error A complete log", "[")
"""How lines begin that pip and npm write behind the reason."""


class InstallError(Exception):
    """A client cannot be installed; the text is the last line of pip or npm."""


def folder(client: Client) -> Path:
    """Return where the environment of a client is, or will be."""
    return CACHE / client.name


def _stamp(client: Client) -> str:
    """Return the name of the file that says that all of this is installed."""
    wanted = "\n".join((client.kind, *client.packages, sys.version))
    return f"installed-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"


def prepare(client: Client) -> None:
    """Install what is missing; raise `InstallError`."""
    place = folder(client)
    if not (place / _stamp(client)).is_file():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for command in _commands(client, place):
            _run(command, place)
        (place / _stamp(client)).touch()
    if client.kind == NODE:
        # Node looks for packages beside the file that imports them.
        for driver in DRIVERS.glob("*.mjs"):
            shutil.copy(driver, place)


def _commands(client: Client, place: Path) -> list[Sequence[str]]:
    """Return the commands that fill an empty folder."""
    if client.kind == NODE:
        (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        # A client's own install script fetches or links its program.
        npm = [str(NPM), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        return [[*npm, "--ignore-scripts=false", *client.packages]]
    uv = shutil.which("uv")
    if uv:
        into = ["--quiet", "--python", str(python(place))]
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(place)],
            [uv, "pip", "install", *into, *client.packages],
        ]
    return [
        [sys.executable, "-m", "venv", str(place)],
        [str(python(place)), "-m", "pip", "install", "--quiet", *client.packages],
    ]


def python(place: Path) -> Path:
    """Return the Python of a virtual environment."""
    return place / "bin/python"


def with_node(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which node's programs find node."""
    path = f"{NODE_PROGRAM.parent}{os.pathsep}{environment.get('PATH', '')}"
    return {**environment, "PATH": path}


def _reason(output: str) -> str:
    """Return the last line that says something, without addresses."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(NO_REASON)]
    last = (said or ["it said nothing"])[-1]
    return re.sub(r"\w+://\S+", "…", last)[:REASON]


def _run(command: Sequence[str], place: Path) -> None:
    try:
        ended = subprocess.run(
            command,
            cwd=place,
            env=with_node(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"not done after {INSTALL_S} s") from None
    if ended.returncode:
        raise InstallError(_reason(ended.stderr or ended.stdout))
