"""The programs that people copy from our pages, run as they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcp_app.account.client_configs import CLIENTS, python_program
from tests.clients.guarded import Guarded
from tests.clients.node import PATIENCE_S, node

pytestmark = pytest.mark.xdist_group("access tokens")


def run(command: Sequence[str | Path]) -> str:
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def text(key: str, guarded: Guarded) -> str:
    return CLIENTS[key].http_text("site", guarded.url, token=guarded.token())


def test_python(guarded: Guarded, tmp_path: Path) -> None:
    program = tmp_path / CLIENTS["python"].place_for_people
    program.write_text(text("python", guarded), encoding="utf-8")
    assert "'drill_add'" in run([sys.executable, program])


def test_a_call_in_python(guarded: Guarded, tmp_path: Path) -> None:
    program = tmp_path / "call.py"
    expression = "await client.call_tool('drill_add', {'a': 1, 'b': 2})"
    text = python_program(guarded.url, guarded.token(), expression)
    program.write_text(text, encoding="utf-8")
    assert "'result': 3" in run([sys.executable, program])


def test_typescript(guarded: Guarded) -> None:
    ended = node("--input-type=module", "--eval", text("typescript", guarded))
    assert ended.returncode == 0, ended.stderr
    assert "'drill_add'" in ended.stdout


def test_curl(guarded: Guarded) -> None:
    assert '"name":"drill_add"' in run(["sh", "-c", text("curl", guarded)])
