"""Runs the suite of the site as its developers would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SITE: Final = "tests.testing.site"
PYTEST: Final = (
    *(
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        f"--rootdir={ROOT}",
        "-p",
        "no:cacheprovider",
    ),
    *("--confcutdir=tests/testing/site", "-p", "mcp_app_pytest"),
    *(f"--ds={SITE}.settings", "-o", "python_files=suite.py with_pytest.py"),
    "tests/testing/site",
)
MANAGE: Final = ("-m", "django", "test", SITE, "--pattern", "suite.py")


def run_suite(
    *arguments: str,
    settings: str = f"{SITE}.settings",
    database: str = "sqlite://:memory:",
) -> str:
    """Run a Python program with these settings; return what it prints."""
    given = {"DJANGO_SETTINGS_MODULE": settings, "DATABASE_URL": database}
    # Where programs sign in, a site without DEBUG must have one, as in its tests.
    given["MCP_PUBLIC_URL"] = "https://shop.example.com"
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return printed
