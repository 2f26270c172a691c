"""Drivers as processes: what they are told, what they report, and how they end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.clients import probes
from benchmarks.clients.catalog import CALLS, Client
from benchmarks.clients.environments import DRIVERS
from benchmarks.clients.probes import Job, jobs, run
from benchmarks.clients.site import Site

DRIVER = f"""
import sys
sys.path.insert(0, {str(DRIVERS)!r})
from contextlib import asynccontextmanager
from driving import MARKS, ORDERED, main

class Connection:
    async def tools(self):
        print("noise")
        return ["drill_add"]

    async def call(self, name, arguments):
        if name == "drill_fail":
            raise ValueError(ORDERED)
        if name == "drill_whoami":
            return {{"revision": "2025-11-25"}}
        for tool, mark in MARKS.values():
            if name == tool:
                return [{{"deep": mark}}]
        return {{"structuredContent": {{"result": 42}}}}

@asynccontextmanager
async def connect(job):
    if job["token"] == "wrong":
        raise ExceptionGroup("several", [ValueError("No such token.")])
    yield Connection()

main(connect)
"""
CLIENT = Client(name="a", title="A 1", packages=("a==1",), driver="drive_a.py")


class Place:
    """What drivers and jobs are told of a site."""

    environment: dict[str, str] = {}
    command = ("serve",)
    wrong = "mcp_wrong"

    def __init__(self) -> None:
        self.done: list[str] = []

    def address(self, slug: str, transport: str) -> str:
        return f"{slug or 'open'}/{transport}"

    def token(self) -> str:
        return "mcp_new"

    def revoke(self, token: str) -> None:
        self.done.append(f"revoked {token}")

    def restart(self) -> None:
        self.done.append("restarted")


@pytest.fixture
def place() -> Site:
    return cast(Site, Place())


@pytest.fixture
def driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Site
) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a driver of this text, by this Python."""
    monkeypatch.setattr(probes, "DRIVERS", tmp_path)
    monkeypatch.setattr(probes, "python", lambda folder: sys.executable)

    def drive(text: str, job: Job) -> dict[str, Any]:
        (tmp_path / CLIENT.driver).write_text(text)
        return run(CLIENT, job, place)

    return drive


def test_all_is_looked_at(driver: Callable[..., dict[str, Any]]) -> None:
    report = driver(DRIVER, Job(transport="http", whole=True))
    assert report["tools"] == 1
    assert report["revision"] == "2025-11-25"
    assert report["seen"] == dict.fromkeys(CALLS, True)


def test_something_happens_between_two_calls(
    driver: Callable[..., dict[str, Any]],
) -> None:
    done: list[str] = []
    job = Job(transport="http", meanwhile=lambda: done.append("meanwhile"))
    report = driver(DRIVER, job)
    assert done == ["meanwhile"]
    assert "42" in report["added"]
    assert "42" in report["after"]


def test_an_error_is_told_out_of_its_group(
    driver: Callable[..., dict[str, Any]],
) -> None:
    report = driver(DRIVER, Job(transport="http", token="wrong"))
    assert report["error"] == "No such token."


def test_a_driver_that_breaks_is_told_of_with_its_last_words(
    driver: Callable[..., dict[str, Any]],
) -> None:
    report = driver("raise SystemExit('no such module')", Job(transport="http"))
    assert report["error"] == "the driver ended without a report: no such module"


def test_a_driver_that_takes_too_long_is_killed(
    driver: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "LIMIT_S", 0)
    text = "import sys; print('a line', flush=True); sys.stdin.readline()"
    report = driver(text, Job(transport="http"))
    assert report["error"].startswith("the driver ended without a report")


def test_drivers_get_nothing_of_whoever_runs_them(
    driver: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    text = "import json, os; print('REPORT', json.dumps(dict(os.environ)))"
    given = driver(text, Job(transport="http"))
    assert "SOME_API_KEY" not in given
    assert given["HOME"] != os.environ.get("HOME")


def test_each_probe_has_its_address_and_its_token(place: Site) -> None:
    found = jobs(CLIENT, place)
    assert {name: (each.url, each.token) for name, each in found.items()} == {
        "http": ("open/http", ""),
        "sse": ("open/sse", ""),
        "stdio": ("", ""),
        "right": ("guarded/http", "mcp_new"),
        "wrong": ("guarded/http", "mcp_wrong"),
        "missing": ("guarded/http", ""),
        "revoked": ("guarded/http", "mcp_new"),
        "restart": ("open/http", ""),
    }
    assert {name for name, each in found.items() if each.meanwhile} == {
        "revoked",
        "restart",
    }
    for each in found.values():
        if each.meanwhile:
            each.meanwhile()
    assert cast(Place, place).done == ["revoked mcp_new", "restarted"]


def test_nothing_is_asked_that_a_client_does_not_have(place: Site) -> None:
    old = Client(
        name="a",
        title="A 0",
        packages=("a==0",),
        driver="drive_a.py",
        lacks=frozenset({"http", "missing"}),
    )
    # A session of HTTP+SSE ends with its process.
    assert jobs(old, place).keys() == {"sse", "stdio", "right", "wrong", "revoked"}
