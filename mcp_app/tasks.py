"""Tasks on the site's own queue: what its workers call.

With `MCP["TASKS"]` "celery" or "django_tasks" that is `run_task`.  For any other queue,
`MCP["TASKS"]` is a function of the site that fills it, and its worker calls `run`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.module_loading import import_string

from mcp_app.conf import mcp_settings
from mcp_app.process.background import background
from mcp_app.process.current import give_up_task, run_waiting_task
from mcp_app.process.queues import (
    CELERY,
    CELERY_TASK,
    DJANGO_TASKS,
    django_tasks_package,
)

__all__ = ["run"]


def run(task_id: str) -> None:
    """Run a task that waits, until its run ends; blocks.

    `task_id` is what the queue got.  Nothing happens if the task does not wait any
    more: a message may come twice, or late.  The result of the tool goes into the row
    of the task.  Raise `mcp_app.process.background.Unsuitable` under gevent, and
    `mcp_app.protocol.errors.Unavailable` if the database is away: the task then waits,
    and the queue gets it again.
    """
    key = int(task_id)
    try:
        background.run_on_loop(partial(run_waiting_task, key))
    except BaseException:
        # Such as the queue's own time limit: the code must not go on without it.
        background.run_on_loop(partial(give_up_task, key))
        raise


def run_task(task_id: str) -> None:
    """Do what `run` does; the queue knows its job by this function's name."""
    run(task_id)


if mcp_settings.tasks == CELERY:
    share: Any = import_string("celery.shared_task")
    run_task = share(name=CELERY_TASK, ignore_result=True)(run_task)
elif mcp_settings.tasks == DJANGO_TASKS:
    run_task = import_string(f"{django_tasks_package()}.task")(run_task)
