"""The APIs of django-oscar and django-helpdesk as tools, their lists held against HTTP.

`make projects` makes the environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.newcomer.programs import CHECKOUT
from tests.newcomer.test_other_projects import Oscar

pytestmark = pytest.mark.long

SETTINGS: Final = """
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
URLS: Final = """
urlpatterns = [
    path("api/", include("oscarapi.urls")),
    path("desk/", include("helpdesk.urls")),
    *urlpatterns,
]
"""


def test_each_list_answers_as_over_http(tmp_path: Path) -> None:
    site = Oscar.made(tmp_path)
    site.install("pip install ../django-mcp-app")
    for file, more in (("settings.py", SETTINGS), ("urls.py", URLS)):
        site.write(file, (site.folder / file).read_text("utf-8") + more)
    program = CHECKOUT / "tests" / "newcomer" / "api_calls.py"
    paths = f"{site.installed}:{site.folder}"
    printed = site.type(
        f"python {program}", DJANGO_SETTINGS_MODULE="settings", PYTHONPATH=paths
    )
    told = json.loads(printed.splitlines()[-1])
    assert told["unlike"] == []
    assert told["tools"] > 100
    assert told["seen"]["boss"] > 20
    assert 0 < told["seen"]["None"] < told["seen"]["boss"]
    # Of two that would have a name in common, and what no document shows.
    names = ("ProductAdminDetail", "APIRootView")
    assert all(any(each in text for each in names) for text in told["problems"])
