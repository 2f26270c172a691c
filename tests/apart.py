"""Runs a pytest of its own in a folder, with the plugins of ours that a test names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PATIENCE_S: Final = 120
NOT_INHERITED: Final = (
    *("COVERAGE_", "DATABASE_URL", "DJANGO_", "PYTEST_", "REDIS_URL"),
    *("REQUIRE_ALL", "SECRECY"),
)
"""What begins so is for the pytest around us, not for the one that we start."""


def inherited() -> dict[str, str]:
    """Return the environment without what is for us alone."""
    return {k: v for k, v in os.environ.items() if not k.startswith(NOT_INHERITED)}


def pytest_apart(
    folder: Path, *options: str, measured: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Return a pytest that has ended, with what it wrote.

    `measured` runs it under coverage; raises `TimeoutExpired` where it hangs.
    """
    coverage = ("coverage", "run", "--data-file=measured", "-m") if measured else ()
    return subprocess.run(
        [sys.executable, "-m", *coverage, "pytest", "--rootdir=.", *options],
        cwd=folder,
        env={
            **inherited(),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
