"""What the proxy of the documentation does for a server, and lets through."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Final, TypeAlias

import pytest

from tests.drill.databases import prepared_file
from tests.drill.ports import HOST
from tests.drill.running import THERE, DrillServer, started
from tests.marks import long_cases
from tests.process.nginx import Nginx
from tests.process.programs import serving
from tests.process.slow_clients import PATIENCE_S, SlowClient, unread_call
from tests.process.streaming import Stateless, called, listening, stateless_request

pytestmark = pytest.mark.programs

PAUSE_S: Final = 2.0
"""After so long nginx asks a process again that it has left alone (hosts.md)."""
Restart: TypeAlias = Callable[[int], None]

MANY: Final = 20
LIMITS: Final = {"request_rate": 60, "request_burst": 20, "batch": 20}
SHORT: Final = {
    "client_header_timeout 10s;": "client_header_timeout 1s;",
    "send_timeout 30s;": "send_timeout 1s;",
    "server_name mcp.example.com;": "",
}


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    settings = {"MCP_LIMITS": json.dumps(LIMITS), "MCP_TRUSTED_PROXIES": "1"}
    with serving("uvicorn", settings) as running:
        yield running


@pytest.fixture(scope="module")
def nginx(
    server: DrillServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nginx]:
    running = Nginx(tmp_path_factory.mktemp("nginx"), server.port, SHORT)
    yield running
    running.stop()


def test_t20_addresses_behind_it_are_told_apart(nginx: Nginx) -> None:
    """Whatever a client writes into the header itself."""
    statuses = [_status(nginx, "127.0.0.2", f"192.0.2.{n}") for n in range(40)]
    assert set(statuses) == {200, 429}
    assert _status(nginx, "127.0.0.3", "127.0.0.2") == 200


def _status(nginx: Nginx, address: str, claimed: str) -> int:
    connection = http.client.HTTPConnection(
        HOST, nginx.port, timeout=PATIENCE_S, source_address=(address, 0)
    )
    headers, body = stateless_request("tools/list")
    claim = {"X-Forwarded-For": claimed}
    try:
        connection.request("POST", "/mcp", body, {**headers, **claim})
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_a_stream_has_to_say_comes_at_once(nginx: Nginx) -> None:
    listening(nginx.url, toolsListChanged=True).leave()


@pytest.mark.parametrize("number", [MANY, *long_cases(1_000)])
def test_t19_half_headers_are_ended(
    nginx: Nginx, server: DrillServer, number: int
) -> None:
    connections = [socket.create_connection((HOST, nginx.port)) for _ in range(number)]
    try:
        for each in connections:
            each.sendall(b"POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nX-Half")
            each.settimeout(PATIENCE_S)
        answer = Stateless(server.url).call("drill_add", a=1, b=2)
        assert answer["structuredContent"] == {"result": 3}
        for each in connections:
            assert each.recv(64) in (b"", b"HTTP/1.1 408")
    finally:
        for each in connections:
            each.close()


def test_t19_readers_that_take_nothing_lose_their_sockets(nginx: Nginx) -> None:
    before = _timed_out(nginx)
    clients: list[SlowClient] = []
    try:
        clients += [
            unread_call(nginx.url, n=90, delay_ms=1, payload_bytes=50_000)
            for _ in range(5)
        ]
        end = time.monotonic() + PATIENCE_S
        while _timed_out(nginx) < before + len(clients):
            assert time.monotonic() < end, nginx.log
            time.sleep(0.1)
    finally:
        for each in clients:
            each.close()


@contextmanager
def _restarting(folder: Path, limits: str) -> Iterator[tuple[Nginx, Path, Restart]]:
    """Run three processes behind it; yield it, their database, what restarts one."""
    file = folder / "db.sqlite3"
    shutil.copy(prepared_file(), file)
    settings = {"DATABASE_URL": f"sqlite:///{file}", "MCP_LIMITS": limits, **THERE}
    servers = [started("uvicorn", settings) for _ in range(3)]

    def restart(number: int) -> None:
        port = servers[number % 3].port
        assert servers[number % 3].stop() == 0
        servers[number % 3] = started("uvicorn", settings, port=port)

    nginx = Nginx(folder, [each.port for each in servers], SHORT)
    try:
        yield nginx, file, restart
    finally:
        nginx.stop()
        for each in servers:
            each.kill()


@pytest.mark.parametrize("calls", [1, *long_cases(3_200)])
def test_a_rolling_restart_leaves_no_call_unanswered(
    tmp_path: Path, calls: int
) -> None:
    over = Event()

    def call_until_over(url: str) -> Iterator[bytes]:
        while not over.is_set():
            yield called(url, "drill_add", a=1, b=2).whole().raw

    with (
        _restarting(tmp_path, "off") as (nginx, _, restart),
        ThreadPoolExecutor() as pool,
    ):
        results = list[bytes]()
        lanes = [
            pool.submit(results.extend, call_until_over(nginx.url)) for _ in range(4)
        ]
        for number in count():
            if number >= 3 and len(results) >= calls:
                break
            restart(number)
            time.sleep(PAUSE_S)
        over.set()
        for each in lanes:
            each.result()
    assert [each for each in results if b'{"result":3}' not in each] == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 200), (signal.SIGKILL, 500)]
)
def test_what_may_have_run_is_not_sent_again(
    tmp_path: Path, number: int, status: int
) -> None:
    with _restarting(tmp_path, '{"drain": 0.1}') as (nginx, file, _):
        answer = called(nginx.url, "drill_ledger", key="once", seconds=3)
        with closing(sqlite3.connect(file)) as connection:
            find_lines = partial(connection.execute, "SELECT worker FROM drill_ledger")
            while not (lines := find_lines().fetchall()):
                time.sleep(0.01)
            os.kill(int(lines[0][0].rpartition(":")[2]), number)
            assert (answer.whole().status, b'"result"' in answer.raw) == (status, False)
            assert find_lines().fetchall() == lines


def _timed_out(nginx: Nginx) -> int:
    return sum(
        "timed out" in line and "while sending to client" in line
        for line in nginx.log.splitlines()
    )
