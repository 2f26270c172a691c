"""Processes that are killed, stand still, or end while they run tasks."""

from __future__ import annotations

import os
import signal
import time

import pytest

from mcp_app.streams.tasks import WORKER_DIED
from tests.marks import long_cases
from tests.tasks.killing import kill, site, wait_until

pytestmark = pytest.mark.programs


@pytest.mark.parametrize("who", ["worker", *long_cases("web", "celery", "db_worker")])
def test_a_task_outlives_its_process_or_ends_with_it(who: str) -> None:
    with site(who) as own:
        tried = kill(own, number=0)
    assert {each.state for each in tried} >= {"waiting", "running", "parked"}
    assert [each for each in tried if each.is_lost or each.starts_too_often] == []


def test_a_worker_ends_what_runs_unless_it_gets_a_second_signal() -> None:
    with site("worker") as own:
        last = own.begin("running", rerun=False, seconds=3)
        wait_until(lambda: own.notes("start", last))
        output = own.restart(0)
        assert "Waits for 1 running tasks, 20 seconds at most." in output
        assert own.ending(last)[0]["status"] == "completed"
        stopped = own.begin("running", rerun=True)
        wait_until(lambda: own.notes("start", stopped))
        [worker] = own.runners
        worker.process.send_signal(signal.SIGINT)
        worker.wait_until(lambda: "Waits for 1" in worker.output, 10)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 0
        assert own.states()[stopped] == "waiting", (
            own.rows(),
            own.notes("start", stopped),
        )


@pytest.mark.long
def test_what_stood_still_for_long_is_stopped_and_writes_nothing() -> None:
    with site("web", least=2) as own:
        once, again = (
            own.begin("running", rerun=each, seconds=600) for each in (False, True)
        )
        wait_until(lambda: own.notes("start", once) and own.notes("start", again))
        [(doomed, _)] = own.notes("start", once)
        own.webs.reverse()
        os.kill(doomed, signal.SIGSTOP)
        time.sleep(30)
        rows = own.rows()
        assert own.ending(once)[0]["error"]["message"] == WORKER_DIED
        assert own.ending(again)[0]["status"] == "completed"
        os.kill(doomed, signal.SIGCONT)
        # Its code is stopped: it would run on for ten minutes.
        wait_until(lambda: own.notes("end", once) and len(own.notes("end", again)) == 2)
        time.sleep(6)
        assert own.rows() == rows
        assert [len(own.notes("start", each)) for each in (once, again)] == [1, 2]
