"""Real projects with a settings file of ours: their admins and APIs by tools.

Lists, forms and GETs are held against their own pages.  `make projects` makes the
environment of django-oscar and django-helpdesk; CONTRIBUTING.md says how to make the
folder that PROJECTS names, with Baby Buddy and bakerydemo.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tests.newcomer.sites import Site
from tests.newcomer.test_other_projects import Oscar

pytestmark = pytest.mark.long

BROWSER: Final = ("webtest", "webob", "waitress", "bs4", "soupsieve")
OSCAR: Final = """
INSTALLED_APPS += [
    *("django.contrib.humanize", "rest_framework", "oscarapi", "bootstrap4form"),
    *("helpdesk", "mcp_app"),
]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
HELPDESK_ACTIVATE_API_ENDPOINT = True
HELPDESK_TEAMS_MODE_ENABLED = False
OSCARAPI_BLOCK_ADMIN_API_ACCESS = False
ALLOWED_HOSTS = ["localhost"]
"""
OSCAR_URLS: Final = """
urlpatterns = [
    path("api/", include("oscarapi.urls")),
    path("desk/", include("helpdesk.urls")),
    *urlpatterns,
]
"""
PUBLISHED: Final = """
from {name}.settings.{module} import *

SECRET_KEY = "of this test alone, and nothing that anybody should know"
INSTALLED_APPS += ["mcp_app"]
ALLOWED_HOSTS = ["localhost"]
DATABASES["default"]["NAME"] = "{beside}/db.sqlite3"
MEDIA_ROOT = "{beside}/media"
plain = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES["staticfiles"] = {{"BACKEND": plain}}
"""


def oscar(beside: Path) -> Site:
    site = Oscar.made(beside)
    for file, more in (("settings.py", OSCAR), ("urls.py", OSCAR_URLS)):
        site.write(file, (site.folder / file).read_text("utf-8") + more)
    return site


def published(name: str, module: str, beside: Path) -> Site:
    folder = Path(os.environ.get("PROJECTS", "/nowhere")) / name
    if not (folder / ".venv").exists():
        pytest.skip(f"{name} is missing: PROJECTS= names no folder with {name}/.venv.")
    site = Site(folder)
    site.installed = beside / "installed"
    site.installed.mkdir()
    site.environment["PATH"] = f"{folder}/.venv/bin:{site.environment['PATH']}"
    settings = PUBLISHED.format(name=name, module=module, beside=beside)
    (site.installed / "settings.py").write_text(settings, "utf-8")
    return site


CASES: Final = {
    "oscar": (oscar, (), {"lists": 100, "forms": 70, "GETs": 100}),
    "babybuddy": (
        partial(published, "babybuddy", "base"),
        ("createcachetable", "fake --days 3"),
        {"lists": 30, "forms": 40, "GETs": 60},
    ),
    "bakerydemo": (
        partial(published, "bakerydemo", "dev"),
        ("load_initial_data",),
        {"lists": 9, "forms": 13, "GETs": 40},
    ),
}


@pytest.mark.parametrize(("make", "rows", "least"), CASES.values(), ids=CASES)
def test_tools_answer_as_pages_and_apis(
    make: Callable[[Path], Site],
    rows: tuple[str, ...],
    least: dict[str, int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = make(tmp_path)
    for name in ("mcp_app", "tests", *BROWSER):
        (site.installed / name).symlink_to(import_module(name).__path__[0])
    code = f"from tests.newcomer import project_calls as p; p.compare_all({[*rows]})"
    printed = site.type(
        f"python -m django shell -c {shlex.quote(code)}",
        DJANGO_SETTINGS_MODULE="settings",
        PYTHONPATH=f"{site.installed}:{site.folder}",
    )
    report = json.loads(printed.splitlines()[-1])
    with capsys.disabled():
        print(json.dumps(report, indent=2))  # noqa: T201 - what the long test is for
    assert report["unlike"] == []
    for what, number in least.items():
        assert sum(report["compared"][what].values()) >= number
    # It would have a name in common with another.
    assert all("ProductAdminDetail" in text for text in report["problems"])
