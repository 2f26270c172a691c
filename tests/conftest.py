"""What every test may use."""

from __future__ import annotations

pytest_plugins = (
    "tests.drill.databases",
    "tests.grouping",
    "tests.require_all",
    "tests.scripting",
    "tests.serving",
)
