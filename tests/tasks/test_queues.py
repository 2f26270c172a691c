"""Tasks on the site's own queue: it is a bell, and the rows say what is to be done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.drill.databases import PREPARED
from tests.drill.programs import ROOT, Program
from tests.drill.running import started
from tests.process.clusters import python_environment, run_python
from tests.tasks.test_death import ask, begin, ended, wait_until_it_runs

pytestmark = pytest.mark.programs

MANAGE: Final = str(ROOT / "manage.py")
YES: Final = {"confirm": {"action": "accept", "content": {"confirm": True}}}
WORKERS: Final = {
    "celery": [
        *(sys.executable, "-m", "celery", "-A", "tests.drill.celery_app", "worker"),
        *("--concurrency", "2", "--without-mingle", "--without-gossip"),
    ],
    "django_tasks": [sys.executable, MANAGE, "db_worker", "--interval", "0.1"],
}
# It rests after half a second, and gets each message twice.
RUN_AND_REST: Final = """
import sys, time, django
django.setup()
from mcp_app.models import Worker
from mcp_app.process import background
from mcp_app.tasks import run
background.REST_S = 0.5
for task_id in sys.argv[1:]:
    run(task_id)
    run(task_id)
    held = Worker.objects.count()
    time.sleep(2)
    print(held, Worker.objects.count())
"""


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with PREPARED["postgresql"]() as url:
        yield {
            "TASK_TOOLS": "1",
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
            "BROKER_URL": "redis://127.0.0.1:6379",
            "QUEUE": f"mcp-{uuid4().hex}",
        }


@pytest.mark.parametrize("queue", WORKERS)
def test_the_workers_of_a_site_run_tasks(
    environment: dict[str, str], queue: str
) -> None:
    environment["MCP_TASKS"] = queue
    if queue == "django_tasks":
        run_python(environment, MANAGE, "migrate", "-v", "0", "django_tasks_database")
    with ExitStack() as stack:
        web = started("uvicorn", environment)
        stack.callback(web.kill)
        parked = begin(web, "confirm_delete", filename="f")
        worker = Program(WORKERS[queue], env=python_environment(environment))
        stack.enter_context(worker)
        last = begin(web, "slow_compute", seconds=60)
        wait_until_it_runs(web, last)
        ask(web, "tasks/cancel", taskId=last)
        # The code is stopped, too: it would run for a minute.
        until = time.monotonic() + 30
        while ask(web, "tasks/get", taskId=parked)["status"] != "input_required":
            assert time.monotonic() < until
            time.sleep(0.1)
        ask(web, "tasks/update", taskId=parked, inputResponses=YES)
        assert ended(web, parked)["result"]["content"][0]["text"] == "Deleted f."


def test_any_queue_and_a_worker_that_rests(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environment["MCP_TASKS"] = "tests.drill.functions.jobs.enqueue"
    environment["QUEUE"] = str(tmp_path / "queue")
    web = started("uvicorn", environment)
    try:
        tasks = [begin(web, "slow_compute", label=label) for label in ("a", "b")]
        until = time.monotonic() + 10
        while len(keys := _lines(tmp_path / "queue")) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        # The server has a row, too.
        assert run_python(environment, "-c", RUN_AND_REST, *keys).split() == [
            *("2", "1") * 2
        ]
        for task in tasks:
            assert ended(web, task)["status"] == "completed"
    finally:
        web.kill()


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_a_queue_that_is_away(environment: dict[str, str]) -> None:
    # Nobody listens there.
    environment |= {"MCP_TASKS": "celery", "BROKER_URL": "redis://127.0.0.1:9"}
    web = started("uvicorn", environment)
    try:
        begun = time.monotonic()
        task = begin(web, "slow_compute", seconds=0)
        assert time.monotonic() - begun < 2
        until = time.monotonic() + 20
        while "The queue of the site takes no tasks" not in web.output:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert ask(web, "tasks/get", taskId=task)["status"] == "working"
    finally:
        web.kill()
