"""Tasks on the site's own queue: it is a bell, and the rows say what is to be done."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from tests.marks import long_cases
from tests.process.clusters import run_python
from tests.tasks.killing import YES, site, wait_until

pytestmark = pytest.mark.programs

# It rests after half a second, and gets each message twice.
RUN_AND_REST: Final = """
import sys, time, django
django.setup()
from mcp_app.models import Worker
from mcp_app.process import current
from mcp_app.tasks import run
current.REST_S = 0.5
for task_id in sys.argv[1:]:
    run(task_id)
    run(task_id)
    held = Worker.objects.count()
    time.sleep(2)
    print(held, Worker.objects.count())
"""


@pytest.mark.parametrize("who", ["celery", *long_cases("db_worker")])
def test_the_workers_of_a_site_run_tasks(who: str) -> None:
    with site(who) as own:
        parked, last = (
            own.begin(each, rerun=False, seconds=600) for each in ("parked", "running")
        )
        wait_until(lambda: own.notes("start", last))
        own.ask("tasks/cancel", taskId=last)
        # The code is stopped, too.
        wait_until(lambda: own.notes("end", last))
        wait_until(lambda: own.states()[parked] == "parked")
        own.ask("tasks/update", taskId=parked, inputResponses=YES)
        assert own.ending(parked)[0]["status"] == "completed"


def test_any_queue_and_a_worker_that_rests(tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    queue.touch()
    path = "tests.drill.queue.enqueue"
    with site("alone", MCP_TASKS=path, QUEUE=str(queue)) as own:
        tasks = [own.begin("running", rerun=False, seconds=1) for _ in range(2)]
        wait_until(lambda: len(queue.read_text().split()) == 2)
        keys = queue.read_text().split()
        # The server has a row, too.
        rows = run_python(own.env, "-c", RUN_AND_REST, *keys).split()
        assert rows == ["2", "1"] * 2
        for task in tasks:
            assert own.ending(task)[0]["status"] == "completed"


@pytest.mark.long
def test_a_queue_that_is_away() -> None:
    # Nobody listens there.
    broker = "redis://127.0.0.1:9"
    with site("alone", MCP_TASKS="celery", BROKER_URL=broker, QUEUE="mcp") as own:
        begun = time.monotonic()
        task = own.begin("waiting", rerun=False)
        assert time.monotonic() - begun < 2
        wait_until(lambda: "queue of the site takes no tasks" in own.webs[0].output)
        assert own.states()[task] == "waiting"
