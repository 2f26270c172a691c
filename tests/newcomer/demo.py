"""`make run` in this checkout, with a database of its own."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_project.shop.supplier_key import supplier_setting
from tests.drill.ports import HOST, free_port
from tests.newcomer.programs import CHECKOUT, Serving, ended, serving, shell_environment

PASSWORD = re.compile(r"^Log in +admin / (\S+) ", re.MULTILINE)


def make_run(port: int | str) -> list[str]:
    if not shutil.which("make"):
        pytest.skip("make is missing: it comes with the system.")
    # A stamp that is there: this environment has what is needed.
    environment = [f"VENV={sys.prefix}", "RUN_STAMP=Makefile"]
    return ["make", "--no-print-directory", "run", f"PORT={port}", *environment]


def demo_environment(database: Path) -> dict[str, str]:
    return shell_environment(DATABASE_URL=f"sqlite:///{database}")


@contextmanager
def demo(
    database: Path, sites: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[Serving]:
    port = free_port()
    environment = demo_environment(database)
    if sites is not None:
        own = json.loads(supplier_setting(f"http://{HOST}:{port}"))
        environment["MCP_HTTP"] = json.dumps({**own, **sites})
    with serving(make_run(port), CHECKOUT, environment, port) as served:
        yield served


def refused(port: int | str, database: Path | None = None, url: str = "") -> str:
    environment = shell_environment(DATABASE_URL=url or f"sqlite:///{database}")
    done = ended(make_run(port), CHECKOUT, environment)
    assert done.returncode != 0
    return done.stderr


def password(served: Serving) -> str:
    found = PASSWORD.search(served.output)
    assert found, served.output
    return found[1]
