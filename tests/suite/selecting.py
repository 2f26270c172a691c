"""A pytest plugin: `--part` collects a part of the tests, and imports no other.

Parts are `in-process`, and `driving`, whose tests drive other programs.  Several are
separated by commas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.suite.rooms import ROOT, drives

IN_PROCESS: Final = "in-process"
DRIVING: Final = "driving"
PARTS: Final = (IN_PROCESS, DRIVING)


def part_of(path: str | Path) -> str:
    """Return the part of a test module; the path is one from the root."""
    return DRIVING if drives(path) else IN_PROCESS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", default="", help=f"collect parts alone: {', '.join(PARTS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    unknown = set(_chosen(config)) - set(PARTS)
    if unknown:
        raise pytest.UsageError(
            f"There is no part {', '.join(sorted(unknown))}: {', '.join(PARTS)}"
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    chosen = _chosen(config)
    if not chosen or collection_path.is_dir() or ROOT not in collection_path.parents:
        return None
    # None leaves it to others, which may ignore it, too.
    return part_of(collection_path.relative_to(ROOT)) not in chosen or None


def _chosen(config: pytest.Config) -> list[str]:
    return [each for each in str(config.getoption("--part")).split(",") if each]
