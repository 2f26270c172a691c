"""Programs as a newcomer starts them: in a fresh shell, ended with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.drill.ports import HOST, has_listener
from tests.drill.programs import Program, ProgramFailed
from tests.wire.programs import wire_checked

CHECKOUT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 120
LOOK_S: Final = 0.05
PATIENCE_S: Final = 840

KEPT: Final = ("LANG", "TMPDIR")


def shell_environment(**variables: str) -> dict[str, str]:
    """The environment of a fresh shell in which the virtual environment is active."""
    programs = Path(sys.executable).parent
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": tempfile.gettempdir(),
        # What is printed has to be there when it is looked for.
        "PYTHONUNBUFFERED": "1",
        **variables,
    }


def ended(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    user: int | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        user=user,
    )


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = ended(command, folder, environment)
    if done.returncode:
        raise ProgramFailed(f"{command} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


class Serving(Program):
    url = ""


@contextmanager
def serving(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], port: int
) -> Iterator[Serving]:
    """Run a program while it serves on the port, and end all of its processes.

    SIGINT would do, too, but not where the tests themselves run in the background.
    """
    with (
        wire_checked(environment) as checked,
        Serving(command, cwd=folder, env=checked) as served,
    ):
        served.url = f"http://{HOST}:{port}"
        served.wait_until(lambda: has_listener(port), START_S)
        yield served
        served.stop()
