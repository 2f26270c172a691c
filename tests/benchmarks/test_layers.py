"""The layers of a call can be measured: the code that they name is still there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

NO_DATABASE = {
    name: value for name, value in os.environ.items() if name != "DATABASE_URL"
}


def test_layers() -> None:
    program = "from benchmarks import layers as l; l.CALLS = l.ROUNDS = 2; l.main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=NO_DATABASE,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [line.split("µs")[1].strip() for line in done.stdout.splitlines()]
    assert shown[0] == "headers"
    assert shown[-1] == "all of it"
    assert len(shown) == 6
