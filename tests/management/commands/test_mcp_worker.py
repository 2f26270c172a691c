"""What the command refuses; tests/tasks/test_death.py has what it does."""

from __future__ import annotations

import math

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings


@pytest.mark.parametrize(
    ("tasks", "options", "sentence"),
    [
        ("here", {}, "is 'here': others run the tasks. Set it to \"worker\""),
        ("celery", {}, "is 'celery': others run the tasks"),
        ("worker", {"places": 0}, "--places is 0: it must be from 1 to 8"),
        ("worker", {"places": 9}, "--places is 9: it must be from 1 to 8"),
        ("worker", {"patience": -5.0}, "--patience is -5: it must be 0 or more"),
        ("worker", {"patience": math.nan}, "--patience is nan: it must be 0 or more"),
    ],
)
def test_what_is_refused(
    settings: Settings, tasks: str, options: dict[str, float], sentence: str
) -> None:
    settings.MCP = {"TASKS": tasks}
    with pytest.raises(CommandError, match=sentence):
        call_command("mcp_worker", **options)


def test_a_worker_that_only_delivers_events_needs_no_places(settings: Settings) -> None:
    settings.MCP = {"EVENTS": {"deliver": "worker"}}
    with pytest.raises(CommandError, match="--places is -1: it must be from 0 to 8"):
        call_command("mcp_worker", places=-1)
