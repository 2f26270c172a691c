"""Checks what programs send that are started by their own command lines."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STARTUP: Final = Path(__file__).with_name("startup")


@contextmanager
def wire_checked(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Give the environment in which every Python checks what its endpoint sends.

    Raises AssertionError at the end where a message was wrong.
    """
    inherited = environment.get("PYTHONPATH")
    path = os.pathsep.join([str(STARTUP), *([inherited] if inherited else [])])
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "violations"
        yield {**environment, "PYTHONPATH": path, "WIRE_REPORT": str(report)}
        assert not report.exists(), report.read_text(encoding="utf-8")
