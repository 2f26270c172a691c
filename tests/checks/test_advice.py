"""Which commands give advice."""

from __future__ import annotations

import sys

import pytest
from django.core import checks

from mcp_app.checks.settings import advising

INFO = checks.Info("Could be better.")
WARNING = checks.Warning("Is unsafe.")


@advising
def check(**_: object) -> list[checks.CheckMessage]:
    return [INFO, WARNING]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["manage.py", "check", "--tag", "mcp"], [INFO, WARNING]),
        (["/srv/site/manage.py", "createsuperuser"], [WARNING]),
        (["./manage.py", "mcp_token", "new", "ada", "laptop"], [WARNING]),
        (["/usr/bin/django-admin", "migrate"], [WARNING]),
        (["django-admin.exe", "check"], [INFO, WARNING]),
        (["/lib/django/__main__.py", "runserver"], [WARNING]),
        (["/lib/django/__main__.py", "check"], [INFO, WARNING]),
        (["/srv/mysite/__main__.py", "migrate"], [WARNING]),
        # So it is under a profiler.
        (["django", "migrate"], [WARNING]),
        (["manage.py"], [INFO, WARNING]),
        (["manage.py", "test"], [INFO, WARNING]),
        # A program that runs the checks itself.
        (["pytest", "tests"], [INFO, WARNING]),
        (["/lib/pytest/__main__.py", "-q", "tests"], [INFO, WARNING]),
        (["site.py", "createsuperuser"], [INFO, WARNING]),
        ([""], [INFO, WARNING]),
        ([], [INFO, WARNING]),
    ],
)
def test_who_is_advised(
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    found: list[checks.CheckMessage],
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    assert check() == found
