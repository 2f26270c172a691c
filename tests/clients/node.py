"""Runs the node programs of the tests with the node of the virtual environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
MODULES: Final = ROOT / "node_modules"
NODE: Final = Path(sys.executable).with_name("node")

PATIENCE_S: Final = 240


def node(
    *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; skip the test where node's modules are missing."""
    if not MODULES.is_dir():
        pytest.skip("node_modules is missing: `make node` installs it.")
    return subprocess.run(
        [NODE, *arguments],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def report_of(script: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Return the JSON that a script of this folder prints; it must end well."""
    ended = node(HERE / script, *arguments, **environment)
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    return report
