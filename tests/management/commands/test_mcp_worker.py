"""What the command refuses; tests/tasks/test_death.py has what it does."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings


@pytest.mark.parametrize(
    ("tasks", "places", "sentence"),
    [
        ("here", "1", 'Set it to "worker", and restart them'),
        ("worker", "0", "--places is 0: it must be from 1 to 8"),
        ("worker", "9", "--places is 9: it must be from 1 to 8"),
    ],
)
def test_what_is_refused(
    settings: Settings, tasks: str, places: str, sentence: str
) -> None:
    settings.MCP = {"TASKS": tasks}
    with pytest.raises(CommandError, match=sentence):
        call_command("mcp_worker", places=int(places))
