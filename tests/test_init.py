from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.apps import apps

import mcp_app
from mcp_app.invalidation import changes

ROOT = Path(__file__).parent.parent

WITHOUT_SETTINGS = """
import os, sys
os.environ.pop("DJANGO_SETTINGS_MODULE", None)
import mcp_app

@mcp_app.mcp.tool
def add(ctx: mcp_app.SyncContext, a: int, b: int) -> int:
    return a + b

from django.apps import apps
from django.conf import settings
assert not apps.ready and not settings.configured
loaded = [name for name in ("mcp_app.models", "channels", "django.db.models",
          "django.forms") if name in sys.modules]
print(add(None, 1, 2), loaded)
"""


def test_what_is_exported_is_sorted_and_complete() -> None:
    names = mcp_app.__all__
    assert names == sorted(names)
    assert len(names) == len(set(names))
    own = {
        name
        for name, value in vars(mcp_app).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "").startswith("mcp_app.")
    }
    assert own <= set(names)
    assert dir(mcp_app) == names


def test_each_name_is_there() -> None:
    missing = [each for each in mcp_app.__all__ if getattr(mcp_app, each) is None]
    assert missing == []


@pytest.mark.parametrize("name", ["achanged", "anotify", "changed", "notify"])
def test_changes_come_when_they_are_asked_for(name: str) -> None:
    assert getattr(mcp_app, name) is getattr(changes, name)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mcp_app.nothing  # noqa: B018


def test_the_version_is_where_the_build_reads_it() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    path = ROOT / tool["hatch"]["version"]["path"]
    assert f'VERSION = "{mcp_app.__version__}"' in path.read_text()


def test_it_works_without_settings_and_apps() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_SETTINGS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "3 []\n"


def test_modules_of_installed_apps_are_imported_at_start() -> None:
    assert str(apps.get_app_config("mcp_app").verbose_name) == "MCP server"
    assert "tests.drill.mcp" in sys.modules
