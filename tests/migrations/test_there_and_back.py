"""Migrations run both ways where there are rows, on every database."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.drill.running import ROOT
from tests.marks import long_cases

PROGRAM: Final = """
import django

django.setup()

from tests.migrations.there_and_back import main

main()
"""


@pytest.mark.parametrize(
    "database_url", ["sqlite", *long_cases("postgresql", "mysql")], indirect=True
)
def test_each_migration_backward_and_forward(database_url: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
