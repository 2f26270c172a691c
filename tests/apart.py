"""What a pytest is given that a program of the tests starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
NOT_INHERITED: Final = (
    *("COVERAGE_", "DATABASE_URL", "DJANGO_", "PYTEST_", "REDIS_URL"),
    *("REQUIRE_ALL", "SECRECY"),
)
"""What begins so is for the pytest around us, not for the one that we start."""


def inherited() -> dict[str, str]:
    """Return the environment without what is for us alone."""
    return {k: v for k, v in os.environ.items() if not k.startswith(NOT_INHERITED)}
