"""@ai-sdk/mcp subscribes to events by webhook, and gets what happens."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.guarded import PREPARE, USER
from tests.clients.node import HERE, MODULES, NODE
from tests.drill.piped import database, environment
from tests.drill.ports import free_port
from tests.drill.programs import Program
from tests.drill.running import ROOT, THERE, running
from tests.egress.certificates import write_certificate
from tests.process.operating import Operator
from tests.serving import PATIENCE_S

ALWAYS: Final = {"test_it_subscribes_and_gets_what_happens"}
EMIT: Final = (
    "from mcp_app import mcp; from tests.drill.functions.happening import Happened;"
    " mcp.emit(Happened({number}, {lane!r}))"
)
SECRET: Final = f"whsec_{b64encode(b'r' * 32).decode()}"


class Subscriber:
    """A program that subscribes with the client, and the site that tells it."""

    def __init__(self, program: Program, operator: Operator) -> None:
        self._program = program
        self._operator = operator

    def do(self, work: str, **options: Any) -> Any:
        self._program.say(json.dumps({"work": work, **options}))
        answer = json.loads(self._program.hear() or "{}")
        assert "result" in answer, (answer, self._program.output)
        return answer["result"]

    def emit(self, number: int, lane: str) -> None:
        self._operator.runs(EMIT.format(number=number, lane=lane))

    def wait_for(self, *numbers: int) -> None:
        """Wait until it has been told of exactly these."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            report = self.do("heard")
            told = [each["data"]["number"] for each in report["events"]]
            if len(told) >= len(numbers):
                break
            time.sleep(0.1)
        assert (told, report["errors"]) == ([*numbers], [])


@pytest.fixture
def subscriber(tmp_path: Path) -> Iterator[Subscriber]:
    if not MODULES.is_dir():
        pytest.skip("node_modules is missing: `make node` installs it.")
    port = free_port()
    write_certificate(tmp_path, "localhost")
    (tmp_path / "port").write_text(str(port))
    env = environment(database(tmp_path))
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    networks = ["127.0.0.0/8", "::1/128"]
    options = {"networks": networks, "ca": str(tmp_path / "certificate.pem")}
    site = {
        "DATABASE_URL": env["DATABASE_URL"],
        "HAPPENINGS": str(tmp_path),
        "MCP_EVENTS": json.dumps(options),
        **THERE,
    }
    with running("uvicorn", site) as url, closing(Operator(site)) as operator:
        token = operator.token(USER, "events", "--change")
        script = str(HERE / "events.mjs")
        command = [str(NODE), script, f"{url}/guarded", token, str(port), str(tmp_path)]
        program = Program(command, pipes=True)
        try:
            yield Subscriber(program, operator)
        finally:
            program.kill()


def test_it_subscribes_and_gets_what_happens(subscriber: Subscriber) -> None:
    (listed,) = subscriber.do("list")
    assert listed["name"] == "drill.happened"
    assert "webhook" in listed["delivery"]
    wanted = {"name": "drill.happened", "arguments": {"lane": "a"}, "ttlMs": 600_000}
    first = subscriber.do("subscribe", **wanted)
    subscriber.emit(1, "a")
    subscriber.emit(2, "b")
    subscriber.emit(3, "a")
    subscriber.wait_for(1, 3)
    refreshed = subscriber.do("refresh", id=first["id"])
    assert refreshed["id"] == first["id"]
    assert refreshed["refreshBefore"] > first["refreshBefore"]
    # Another secret for the same: the receiver knows the new one alone.
    rotated = subscriber.do("rotate", id=first["id"], secret=SECRET)
    assert rotated["id"] == first["id"]
    subscriber.emit(4, "a")
    subscriber.wait_for(1, 3, 4)
    assert subscriber.do("unsubscribe", id=first["id"]) == 0
    subscriber.emit(5, "a")
    time.sleep(2)
    subscriber.wait_for(1, 3, 4)
