"""What `make audit` makes of lock files, and of databases that are away."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from tests.drill.ports import HOST, free_port
from tests.suite.audit import (
    FINE,
    HOLES,
    NO_DATABASE,
    Findings,
    audit,
    note_answers,
    of_node,
    of_python,
    status_of,
)
from tests.suite.rooms import ROOT

HOLE: Final = {
    "id": "PYSEC-0000-1",
    "aliases": ["CVE-0000-1"],
    "modified": "2026-01-01T00:00:00Z",
    "details": "Whoever asks twice\ncomes in.",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "leaky"},
            "ranges": [
                {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}
            ],
        }
    ],
}
ADVISORY: Final = {
    "id": 7,
    "url": "https://advisories.example/7",
    "title": "Whoever asks twice comes in",
    "severity": "high",
    "vulnerable_versions": "<1.1.0",
}


class Advisories(BaseHTTPRequestHandler):
    """Knows of one hole, in version 1.0 of `leaky`, for both kinds of clients."""

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        body = self.rfile.read(size)
        if self.path == "/v1/query":
            asked = json.loads(body)
            is_leaky = asked["package"]["name"] == "leaky" and asked["version"] == "1.0"
            self.answer({"vulns": [HOLE]} if is_leaky else {})
        elif self.path == "/-/npm/v1/security/advisories/bulk":
            self.answer({"leaky": [ADVISORY]} if self.server.npm_leaks else {})  # type: ignore[attr-defined]
        else:
            self.send_error(404)

    def do_GET(self) -> None:
        # npm asks which versions there are.
        self.answer({"name": "leaky", "versions": {"1.0.0": {"version": "1.0.0"}}})

    def answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Service(ThreadingHTTPServer):
    """An advisory service on loopback."""

    def __init__(self) -> None:
        super().__init__((HOST, 0), Advisories)
        self.asked: list[str] = []
        self.npm_leaks = True

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}"


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as made:
        thread = Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both programs keep what they remember here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def lock(folder: Path, name: str = "leaky", version: str = "1.0.0") -> None:
    """Write the lock of a node program that needs one package."""
    package = {"name": "p", "version": "1.0.0", "devDependencies": {name: version}}
    packages = {
        "": package,
        f"node_modules/{name}": {"version": version, "dev": True, "license": "MIT"},
    }
    whole = {**package, "lockfileVersion": 3, "requires": True, "packages": packages}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "package-lock.json").write_text(json.dumps(whole))


def pinned(folder: Path, *pins: str, name: str = "requirements.txt") -> None:
    (folder / name).write_text("\n".join(["# What it needs.", *pins, ""]))


def ended(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the program as make does."""
    return subprocess.run(
        [sys.executable, "-m", "tests.suite.audit", *options, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_t32_a_pin_with_a_known_hole_fails(folder: Path, service: Service) -> None:
    pinned(folder, "fine==2.0")
    pinned(folder, "Leaky[extra]==1.0", name="requirements-test.txt")
    found = ended(folder, "--osv-url", f"{service.url}/v1/query")
    assert found.returncode == HOLES, found.stderr
    assert found.stdout == (
        "leaky==1.0: PYSEC-0000-1, CVE-0000-1, mended in 1.1. Whoever asks twice"
        " comes in.\n"
    )
    assert service.asked == ["/v1/query"] * 2
    pinned(folder, "leaky==1.1", name="requirements-test.txt")
    found = ended(folder, "--osv-url", f"{service.url}/v1/query")
    assert found.returncode == FINE, found.stderr
    assert found.stdout == "requirements*.txt: no hole is known in 2 pins.\n"


def test_t32_a_node_program_with_a_known_hole_fails(
    folder: Path, service: Service
) -> None:
    lock(folder)
    (found,) = audit(folder, registry=service.url)
    assert found.holes == [
        "leaky <1.1.0: Whoever asks twice comes in (https://advisories.example/7)"
    ]
    assert found.status == HOLES
    service.npm_leaks = False
    (found,) = audit(folder, registry=service.url)
    assert (found.status, found.pins, found.reason) == (FINE, 1, "")


def test_t32_without_a_database_nothing_is_fine(folder: Path) -> None:
    pinned(folder, "leaky==1.0")
    lock(folder)
    nobody = f"http://{HOST}:{free_port()}"
    found = ended(folder, "--osv-url", f"{nobody}/v1/query", "--registry", nobody)
    assert found.returncode == NO_DATABASE, found.stdout
    python, node = found.stdout.splitlines()
    for line, what in ((python, "requirements*.txt"), (node, "package-lock.json")):
        assert line.startswith(f"{what}: no advisory database has answered, so nothing")


@pytest.mark.long
def test_what_npm_would_not_ask_for_is_asked_for(
    folder: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_ENV", "production")
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_audit", "false")
    lock(folder)
    assert of_node(folder, [f"--registry={service.url}"]).status == HOLES


@pytest.mark.long
def test_a_service_that_is_none(folder: Path, service: Service) -> None:
    pinned(folder, "leaky==1.0")
    options = ["--vulnerability-service", "osv", "--osv-url", f"{service.url}/else"]
    found = of_python(folder, options)
    assert (found.status, found.unknown) == (NO_DATABASE, ["leaky==1.0"])


@pytest.mark.long
def test_what_is_not_pinned_is_not_fine(folder: Path, service: Service) -> None:
    pinned(folder, "leaky>=1.0")
    options = ["--vulnerability-service", "osv", "--osv-url", f"{service.url}/v1/query"]
    found = of_python(folder, options)
    assert found.status == NO_DATABASE
    assert "leaky" in found.reason


@pytest.mark.long
def test_a_folder_without_locks(folder: Path) -> None:
    found = ended(folder)
    assert found.returncode == 2
    assert str(folder) in found.stderr


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([], FINE),
        ([Findings("a", 1)], FINE),
        ([Findings("a", 1), Findings("b", 1, reason="away")], NO_DATABASE),
        ([Findings("a", 1, unknown=["x==1"])], NO_DATABASE),
        ([Findings("a", 1, reason="away"), Findings("b", 1, holes=["x"])], HOLES),
    ],
)
def test_a_hole_counts_more_than_a_database_that_is_away(
    found: list[Findings], status: int
) -> None:
    assert status_of(found) == status


def test_pins_that_nobody_knows_are_named() -> None:
    (line,) = Findings("a", 3, unknown=["x==1", "y==2"]).lines()
    assert line == "a: the advisory database knows nothing of x==1, y==2."


def test_t32_what_pip_audit_skips_is_not_fine() -> None:
    """It ends with 0 where a registry has no advisories, and knows no package."""
    skipped = {"name": "x", "skip_reason": "Dependency not found: x (1)"}
    good = {"name": "Y", "version": "2.0", "vulns": []}
    some, none = Findings("a", 2), Findings("a", 2)
    note_answers(some, {"x==1", "y==2.0"}, [skipped, good])
    assert (some.status, some.unknown, some.reason) == (NO_DATABASE, ["x==1"], "")
    note_answers(none, {"x==1"}, [skipped])
    (line,) = none.lines()
    assert line.endswith("nothing is known of 2 pins. Dependency not found: x (1)")
