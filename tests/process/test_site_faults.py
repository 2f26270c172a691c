"""`mcp_check` and what is wrong with a site itself, not with its proxy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from pytest_django import Settings

from tests.drill.databases import prepared_file
from tests.drill.ports import free_port
from tests.drill.running import (
    LOOK_S,
    ROOT,
    SERVING,
    START_S,
    THERE,
    DrillServer,
    inherited,
    started,
)
from tests.process.clusters import python_environment
from tests.process.nginx import Nginx
from tests.process.programs import program, serving
from tests.process.streaming import called
from tests.process.test_proxies import (
    ENVIRONMENT,
    KEY,
    LIMITS,
    Findings,
    certificate,
    checked,
    inside,
    problems,
    without,
    worst,
)

pytestmark = [pytest.mark.django_db, pytest.mark.long, pytest.mark.programs]

__all__ = ["certificate"]

PRELOADED: Final = [*Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")]
ALONE: Final = {**ENVIRONMENT, "MCP_TRUSTED_PROXIES": "0"}


@pytest.fixture(autouse=True)
def _site(settings: Settings) -> None:
    settings.SECRET_KEY = KEY
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.MCP = {"LIMITS": LIMITS}


@pytest.fixture(scope="module")
def view() -> Iterator[DrillServer]:
    """The endpoint as a view: Django's middleware comes before it."""
    own = {
        "MOUNT": "view",
        "SECURE_SSL_REDIRECT": "true",
        "SECURE_PROXY_SSL_HEADER": "HTTP_X_FORWARDED_PROTO,https",
    }
    environment = {"SERVER": "uvicorn", "WIRE": "check", "ROWS": str(prepared_file())}
    running = DrillServer(
        free_port(), {**inherited(), **environment, **ENVIRONMENT, **own}
    )
    # Whoever asks it by http is led to https, where nobody is.
    end = time.monotonic() + START_S
    while SERVING not in running.output:
        assert time.monotonic() < end, running.output
        time.sleep(LOOK_S)
    yield running
    assert running.stop() == 0, running.output


@pytest.mark.parametrize(
    ("rule", "lost"),
    [
        ("host", "proxy_set_header Host $http_host;"),
        ("redirect", "proxy_set_header X-Forwarded-Proto $scheme;"),
    ],
)
def test_behind_djangos_middleware(
    view: DrillServer,
    certificate: Path,
    tmp_path: Path,
    settings: Settings,
    rule: str,
    lost: str,
) -> None:
    """A lost Host is Django's 400, a lost scheme a redirect to the same address."""
    settings.MCP = {"LIMITS": LIMITS, "TRUSTED_PROXIES": 1}
    nginx = Nginx(tmp_path, view.port, {}, certificate)
    try:
        status, found = checked(nginx.url, certificate)
        assert (status, problems(found)) == (0, []), found
        nginx.reconfigure(lambda text: without(text, lost))
        status, found = checked(nginx.url, certificate)
        assert (status, problems(found)) == (1, [rule]), found
        assert found[rule]["line"] == lost
        line = found[rule]["line"]
        nginx.reconfigure(lambda text: inside(without(text, lost), line))
        assert checked(nginx.url, certificate)[0] == 0
    finally:
        nginx.stop()


def test_one_worker_with_one_thread(certificate: Path) -> None:
    with program("sync", ALONE) as running:
        status, found = checked(running.url, certificate)
    assert (status, problems(found)) == (1, ["side by side"])
    assert found["streams"]["grade"] == "unknown"
    more = found["side by side"]["line"].split()[2:]
    with program("sync", ALONE, *more) as running:
        status, found = checked(running.url, certificate)
    assert (status, problems(found)) == (0, [])


def test_clocks_that_differ(certificate: Path) -> None:
    if not PRELOADED:
        pytest.skip("faketime is missing: it comes with the system.")
    fake = {"LD_PRELOAD": str(PRELOADED[0]), "FAKETIME": "+60"}
    own = {**ALONE, **fake, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with program("uvicorn", own) as running:
        status, found = checked(running.url, certificate)
    assert (status, problems(found)) == (1, ["clocks"])


def test_two_processes_with_two_keys(certificate: Path, tmp_path: Path) -> None:
    other = {**ENVIRONMENT, "SECRET_KEY": "a key of another process: 0123456789"}
    one, two = started("uvicorn", ENVIRONMENT), started("uvicorn", other)
    nginx = Nginx(tmp_path, [one.port, two.port], {}, certificate)
    try:
        found = [checked(nginx.url, certificate) for _ in range(2)]
    finally:
        nginx.stop()
        for each in (one, two):
            assert each.stop() == 0, each.output
    assert {status for status, _ in found} == {1}
    assert all("ours" in problems(each) for _, each in found)


def told_by(
    environment: Mapping[str, str], url: str, *options: str
) -> tuple[int, Findings]:
    command = [sys.executable, "-m", "django", "mcp_check", url, "--json", *options]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=python_environment(environment),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, worst(json.loads(done.stdout))


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    database = shutil.copy(prepared_file(), tmp_path / "db.sqlite3")
    return {**ALONE, **THERE, "DATABASE_URL": f"sqlite:///{database}"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({}, "All processes run the same code with the same keys: 2."),
        ({"NOISE": "1"}, "Processes run different code."),
        ({"SECRET_KEY": f"other {KEY}"}, "Processes have different secret keys."),
    ],
)
def test_two_processes(site: dict[str, str], other: dict[str, str], words: str) -> None:
    both = [started("uvicorn", site), started("uvicorn", {**site, **other})]
    try:
        for each in both:
            assert called(each.url, "drill_add", a=1, b=1).whole().messages
        status, found = told_by(site, both[0].url)
    finally:
        assert [each.stop() for each in both] == [0, 0]
    assert found["processes"]["what"] == words
    assert problems(found) == (["processes"] if other else [])
    assert status == (1 if other else 0)


def test_sqlite_without_wal(site: dict[str, str]) -> None:
    site["DATABASE_URL"] += "?init_command=PRAGMA%20journal_mode%3DDELETE"
    with serving("uvicorn", site) as running:
        _, found = told_by(site, running.url)
    assert found["mcp_app.W015"]["what"].startswith("SQLite has journal_mode = delete")
