from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import override_settings

from mcp_app import conf
from mcp_app.catalog.findings import Place, record_problem
from mcp_app.catalog.registry import Registry
from mcp_app.checks.deployment import check_deployment
from mcp_app.process import lifecycle
from mcp_app.process.lifecycle import log_closed_hosts, log_problems
from tests.apart import ROOT

BROKEN = """from django.contrib.auth.models import User
from mcp_app import mcp

@mcp.tool
def users() -> list[User]: ...

@mcp.tool
def names() -> list[str]: ...
"""
SITE = """
import asyncio
import logging
from django.conf import settings

logging.basicConfig(format="%(levelname)s %(message)s", level="ERROR")
settings.configure(
    SECRET_KEY="a key for one test, which seals nothing of worth: 0123",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "mcp_app",
                    "broken_shop"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3",
                           "NAME": ":memory:"}},
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
)
import django
django.setup()
from mcp_app import mcp
from mcp_app.process.current import process
from django.core.checks import run_checks

async def main():
    first = process()
    assert process() is first
    first.close()
asyncio.run(main())
print([*mcp.tools], [each.id for each in run_checks() if each.level > 30])
"""


@pytest.fixture(autouse=True)
def _nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_logged", set())


def test_a_site_with_a_broken_module_starts(tmp_path: Path) -> None:
    folder = tmp_path / "broken_shop"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "mcp.py").write_text(BROKEN)
    ended = subprocess.run(
        [sys.executable, "-c", SITE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr.splitlines() == [
        f"ERROR {conf.EVERY_HOST_REFUSED} {conf.NAME_HOSTS_HINT}",
        f"ERROR {folder}/mcp.py:4: broken_shop.mcp.users: the result"
        " list[django.contrib.auth.models.User] has the Django model User, which"
        ' cannot be written as JSON. Return dicts, for example list(qs.values("id",'
        ' "name")).',
    ]
    assert ended.stdout == "['names'] ['mcp_app.E012']\n"


def test_problems_are_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    monkeypatch.setattr(lifecycle, "mcp", registry)
    log_problems()
    assert caplog.records == []
    registry.tool("closed", rule="weekdays")(lambda: "done")
    record_problem(registry.problems, Place("mcp.py", 2), "It is wrong: 100%.")
    log_problems()
    log_problems()
    broken, closed = caplog.records
    assert (broken.levelno, broken.getMessage()) == (
        logging.ERROR,
        "mcp.py:2: It is wrong: 100%.",
    )
    assert closed.levelno == logging.WARNING
    assert "'closed' requires the rule 'weekdays'" in closed.getMessage()


def test_closed_hosts_are_logged_as_the_check_has_it(
    settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    log_closed_hosts()
    assert caplog.records == []
    settings.ALLOWED_HOSTS = ["*"]
    with override_settings(DEBUG=True):
        log_closed_hosts()
    with override_settings(MCP={"HOSTS": ["shop.example"]}):
        log_closed_hosts()
    with override_settings(MCP={"LIMITS": "of"}):
        log_closed_hosts()
    assert caplog.records == []
    log_closed_hosts()
    log_closed_hosts()
    [record] = caplog.records
    error = check_deployment(None)[0]
    assert error.id == "mcp_app.E005"
    assert record.getMessage() == f"{error.msg} {error.hint}"
