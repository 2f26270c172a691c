"""A server that forks after its first requests."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.drill.running import ROOT, inherited
from tests.marks import long_cases

pytestmark = pytest.mark.programs


@pytest.mark.parametrize(
    "prepared_url", ["mysql", *long_cases("sqlite", "postgresql")], indirect=True
)
def test_a_fork_after_the_first_request(prepared_url: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.process.forking"],
        cwd=ROOT,
        env={
            **inherited(),
            "DATABASE_URL": prepared_url,
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    main, parent, child, status, again = map(json.loads, finished.stdout.splitlines())
    assert status == 0
    for each in (parent, child, again):
        assert each["answers"] == ["42", "42", 200]
    assert parent["worker"] != child["worker"]
    if not prepared_url.startswith("sqlite"):
        used = [main, *parent["connections"], *child["connections"]]
        assert len(set(used)) == len(used)
