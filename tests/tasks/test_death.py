"""Workers that are killed, or stand still, while they run tasks."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

import pytest

from mcp_app.streams.tasks import WORKER_DIED
from tests.drill.databases import PREPARED
from tests.drill.programs import ROOT, Program
from tests.drill.running import DrillServer, inherited, started
from tests.marks import long_cases
from tests.process.streaming import JsonObject, stateless
from tests.tasks.conftest import ENDED, TAKES_TASKS

pytestmark = pytest.mark.programs

PATIENCE_S: Final = 60
BY_WORKERS: Final = {"TASK_TOOLS": "1", "MCP_TASKS": "worker"}
META: Final = {"io.modelcontextprotocol/clientCapabilities": TAKES_TASKS}


def ask(server: DrillServer, method: str, **params: Any) -> JsonObject:
    answer = stateless(server.url, method, **params, _meta=META).whole()
    result: JsonObject = answer.messages[-1]["result"]
    return result


def begin(server: DrillServer, tool: str, **arguments: Any) -> str:
    result = ask(server, "tools/call", name=tool, arguments=arguments)
    assert result["resultType"] == "task", result
    identifier: str = result["taskId"]
    return identifier


def ended(server: DrillServer, task: str) -> JsonObject:
    until = time.monotonic() + PATIENCE_S
    while (found := ask(server, "tasks/get", taskId=task))["status"] not in ENDED:
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return found


def wait_until_it_runs(server: DrillServer, task: str) -> None:
    """Wait until a task has begun to run."""
    until = time.monotonic() + PATIENCE_S
    while not ask(server, "tasks/get", taskId=task).get("statusMessage"):
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.fixture
def servers() -> Iterator[tuple[DrillServer, DrillServer]]:
    with PREPARED["postgresql"]() as url:
        env = {"TASK_TOOLS": "1", "DATABASE_URL": url}
        pair = started("uvicorn", env), started("uvicorn", env)
        try:
            yield pair
        finally:
            for each in pair:
                with suppress(ProcessLookupError):
                    each.process.send_signal(signal.SIGCONT)
                each.kill()


def worker(url: str, *options: str) -> Program:
    env = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.drill.settings"}
    command = [sys.executable, str(ROOT / "manage.py"), "mcp_worker", *options]
    program = Program(command, env={**inherited(), **BY_WORKERS, **env})
    program.wait_until(lambda: "Runs " in program.output, PATIENCE_S)
    return program


def test_workers_run_tasks_and_one_that_is_killed_is_replaced() -> None:
    with PREPARED["postgresql"]() as url, ExitStack() as stack:
        web = started("uvicorn", {**BY_WORKERS, "DATABASE_URL": url})
        stack.callback(web.kill)
        again = begin(web, "enter_again", key="again", seconds=1)
        doomed = stack.enter_context(worker(url, "--places", "1"))
        time.sleep(5)
        doomed.kill()
        second = stack.enter_context(worker(url, "--places", "2", "--patience", "30"))
        assert ended(web, again)["result"]["structuredContent"] == {"result": 2}
        last = begin(web, "slow_compute", seconds=4, label="last")
        wait_until_it_runs(web, last)
        # After the signal it ends what runs.
        assert second.stop() == 0
        assert "Waits for 1 running tasks, 30 seconds at most." in second.output
        assert ended(web, last)["status"] == "completed"
        third = stack.enter_context(worker(url))
        stopped = begin(web, "slow_compute", seconds=300)
        wait_until_it_runs(web, stopped)
        third.process.send_signal(signal.SIGINT)
        third.wait_until(lambda: "Waits for 1" in third.output, PATIENCE_S)
        # A second signal ends it; as it may run again, it waits.
        assert third.stop() == 0
        assert ask(web, "tasks/get", taskId=stopped)["status"] == "working"


@pytest.mark.parametrize("number", [signal.SIGKILL, *long_cases(signal.SIGSTOP)])
def test_a_task_outlives_its_worker_or_ends_with_it(
    servers: tuple[DrillServer, DrillServer], number: signal.Signals
) -> None:
    doomed, survivor = servers
    again = begin(doomed, "enter_again", key="again", seconds=1)
    once = begin(doomed, "enter_once", key="once", seconds=20)
    parked = begin(doomed, "confirm_delete", filename="f")
    time.sleep(1)
    doomed.process.send_signal(number)
    failed = ended(survivor, once)
    assert (failed["status"], failed["error"]["message"]) == ("failed", WORKER_DIED)
    assert ended(survivor, again)["result"]["structuredContent"] == {"result": 2}
    reply = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    ask(survivor, "tasks/update", taskId=parked, inputResponses=reply)
    assert ended(survivor, parked)["result"]["content"][0]["text"] == "Deleted f."
    if number == signal.SIGSTOP:
        doomed.process.send_signal(signal.SIGCONT)
        time.sleep(8)
        # Nothing of it reaches the rows, and its code is stopped.
        assert ask(survivor, "tasks/get", taskId=once) == failed
        assert ask(doomed, "tools/call", name="drill_add", arguments={"a": 1, "b": 2})
