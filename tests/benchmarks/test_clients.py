"""The real clients can be driven: here by a driver whose client does all of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.clients import probes
from benchmarks.clients.catalog import ALL, Client
from benchmarks.clients.environments import DRIVERS
from benchmarks.clients.verdicts import verdict

DRIVER = f"""
import sys
sys.path.insert(0, {str(DRIVERS)!r})
from contextlib import asynccontextmanager
from driving import MARKS, ORDERED, Session, main

class Client:
    async def list_tools(self):
        return ["drill_add"] * 247

    async def call_tool(self, name, arguments):
        marks = {{**dict(MARKS.values()), "drill_fail": ORDERED}}
        return [marks.get(name, "2025-11-25"), "structuredContent: result: 42"]

@asynccontextmanager
async def connect(job):
    yield Session(Client())

main(connect)
"""


def test_a_client_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all((DRIVERS / each.driver).is_file() for each in ALL)
    lacks = {"sse", "stdio", "resources", "prompts", "wrong", "missing", "revoked"}
    client = Client(name="a", title="", packages=(), driver="a.py", lacks=lacks)
    (tmp_path / "a.py").write_text(DRIVER)
    monkeypatch.setattr(probes, "DRIVERS", tmp_path)
    monkeypatch.setattr(probes, "python", lambda folder: sys.executable)
    site: Any = SimpleNamespace(environment={}, wrong="", done=[])
    site.address, site.token = lambda *_: "", lambda: ""
    site.restart = lambda: site.done.append("restarted")
    jobs = probes.jobs(client, site)
    assert jobs.keys() == {"http", "right", "restart"}
    reports = {name: probes.run(client, job, site) for name, job in jobs.items()}
    found = verdict(client, reports)
    assert not found.faults
    assert site.done == ["restarted"]
    assert {*found.cells.values()} == {"+", "2025-11-25"}
