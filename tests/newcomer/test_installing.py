"""`make run` where it cannot install what it needs: one sentence with the way out."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.newcomer.programs import CHECKOUT, ended, shell_environment

FILES: Final = (
    *("Makefile", "requirements.txt", "requirements-test.txt"),
    *("requirements-mysql.txt", "requirements-docs.txt", "requirements-fuzz.txt"),
    *("package-lock.json", ".npmrc"),
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A checkout without an environment, which everybody may read."""
    if not shutil.which("make"):
        pytest.skip("make is missing: it comes with the system.")
    with tempfile.TemporaryDirectory() as made:
        for name in FILES:
            shutil.copy(CHECKOUT / name, made)
        Path(made).chmod(0o755)
        yield Path(made)


def refused(
    folder: Path, *arguments: str, user: int | None = None, **environment: str
) -> str:
    command = ["make", "--no-print-directory", "run", *arguments]
    done = ended(command, folder, shell_environment(**environment), user)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr.partition("make: ***")[0].strip()


def test_no_python_that_is_new_enough(folder: Path) -> None:
    assert refused(folder, "PYTHON=") == (
        "Python 3.11 or newer is needed, and none was found. Name one:"
        " make PYTHON=/path/to/python"
    )


def test_a_python_that_is_too_old(folder: Path) -> None:
    old = folder / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    assert refused(folder, f"PYTHON={old}") == (
        f"Python 3.11 or newer is needed: {old} is not. Name one:"
        " make PYTHON=/path/to/python"
    )


def test_another_make_that_installs(folder: Path) -> None:
    (folder / ".venv.lock").mkdir()
    said = refused(folder, f"PYTHON={sys.executable}")
    assert said.startswith("Another make is installing into .venv. Wait for it.")
    assert (folder / ".venv.lock").exists()
    assert not (folder / ".venv").exists()


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    folder.chmod(0o555)
    # Root may write everywhere.
    user = None if os.geteuid() else 65534
    said = refused(folder, "PYTHON=/usr/bin/env python3", user=user)
    folder.chmod(0o755)
    assert said.startswith("This folder cannot be written")
    assert str(folder) in said


@pytest.mark.long
def test_no_network(folder: Path) -> None:
    said = refused(
        folder,
        f"PYTHON={sys.executable}",
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL="http://127.0.0.1:9/",
        PIP_RETRIES="0",
    )
    assert "pip could not install requirements.txt" in said
    assert "Check the network, then run make again." in said
    assert not (folder / ".venv.lock").exists()
    assert not list((folder / ".venv").glob("installed-*"))
