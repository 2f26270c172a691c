"""The site's own queue: it is told of tasks, and its workers run them.

The queue only wakes a worker; the row says what to do.  If a message is lost, late or
repeated, the task still runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from mcp_app.conf import mcp_settings
from mcp_app.pools.loop_thread import run_apart

BY_US: Final = frozenset(["here", "worker"])
"""Values of `MCP["TASKS"]` with which our own processes run tasks."""
CELERY: Final = "celery"
DJANGO_TASKS: Final = "django_tasks"
CELERY_TASK: Final = "mcp_app.run_task"


class UnusableQueue(ValueError):
    """Nothing can be given to the queue; the message says why."""


def has_queue() -> bool:
    return mcp_settings.tasks not in BY_US


async def tell_queue(keys: Sequence[int]) -> None:
    """Give tasks to the queue; raises whatever the queue raises.

    A broker may hang for minutes.
    """
    await run_apart(partial(_tell_queue, keys), "mcp-queue")


def _tell_queue(keys: Sequence[int]) -> None:
    try:
        enqueue = find_queue(mcp_settings.tasks)
        for key in keys:
            enqueue(str(key))
    finally:
        connections.close_all()


def find_queue(setting: str) -> Callable[[str], object]:
    """Return the function that takes the id of a task; raise `UnusableQueue`."""
    if setting == CELERY:
        return _find_celery()
    if setting == DJANGO_TASKS:
        return _find_django_tasks()
    try:
        enqueue: Callable[[str], object] = import_string(setting)
    except ImportError as error:
        raise UnusableQueue(
            f'MCP["TASKS"] is {setting!r}: it must be "here", "worker", "celery",'
            f' "django_tasks", or the path of a function. {error}.'
        ) from error
    if not callable(enqueue):
        raise UnusableQueue(f'MCP["TASKS"] is {setting!r}, which is no function.')
    return enqueue


def _find_celery() -> Callable[[str], object]:
    if find_spec("celery") is None:
        raise UnusableQueue('MCP["TASKS"] is "celery", which is not installed.')
    app: Any = import_string("celery.current_app")
    if app.main == "default" and not app.conf.broker_url:
        raise UnusableQueue(
            'MCP["TASKS"] is "celery", and this process has no Celery app. Import yours'
            " in the __init__.py beside your settings, as Celery's guide says."
        )
    if app.conf.task_always_eager:
        raise UnusableQueue(
            "Celery's task_always_eager is set, so its workers get nothing."
        )

    def enqueue(task_id: str) -> None:
        # Celery would try for a long time; we try again later.
        app.send_task(CELERY_TASK, [task_id], retry=False, ignore_result=True)

    return enqueue


def django_tasks_package() -> str:
    """Return the package that has `task`: Django's own from 6.0 on, or its backport."""
    return "django.tasks" if find_spec("django.tasks") else "django_tasks"


def _find_django_tasks() -> Callable[[str], object]:
    package = django_tasks_package()
    if find_spec(package) is None:
        raise UnusableQueue(
            'MCP["TASKS"] is "django_tasks": it needs Django 6.0, or the package'
            " django-tasks."
        )
    backends: Any = import_string(f"{package}.task_backends")
    try:
        backend = backends["default"]
    except ImproperlyConfigured as error:
        raise UnusableQueue(
            f"TASKS has no backend that can be used: {error}"
        ) from error
    for kind in ("immediate.ImmediateBackend", "dummy.DummyBackend"):
        if isinstance(backend, import_string(f"{package}.backends.{kind}")):
            raise UnusableQueue(
                f"The backend of TASKS is {type(backend).__name__}, which has no"
                " workers. Set one that has, such as"
                ' "django_tasks_db.DatabaseBackend".'
            )
    try:
        run_task = import_string("mcp_app.tasks.run_task")
    except Exception as error:
        raise UnusableQueue(f"TASKS takes no task of mcp_app: {error}") from error
    enqueue: Callable[[str], object] = run_task.enqueue
    return enqueue
