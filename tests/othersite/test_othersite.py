"""A site of another kind works: each page opens, and each kind answers.

It has no zones, it is German, its people have UUIDs and sign in by e-mail, and its
`AdminSite` is its own.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from tests.drill.databases import DATABASES
from tests.egress.peer import answer, peer_in_thread
from tests.marks import long_cases
from tests.newcomer.programs import CHECKOUT, run, shell_environment

pytestmark = pytest.mark.programs

PROGRAM: Final = """
import django; django.setup()
from tests.othersite.using import main; main()
"""
OF_A_STATE: Final = re.compile(
    "_(app|cancel|delete|fetch|fetch_new|forget|preview|replace|reset|rollback|unpublish|version)$"
    "|session_add$|(task|eventsubscription)_(add|change|history)$"
    "|eventtype_(calls|change|history|publish|stop|try|who)$"
)
"""Pages that only a row in some state links to, and what a script or a form asks.

Nothing of this site runs as a task, and it has no events.
"""
BEGINS: Final = "2026-11-18T06:00:00"
TIMES: Final = {"moment": BEGINS, "day": "2026-11-18", "time": "09:30:00"}
SHIFT: Final = {"begins": BEGINS, "at": "06:00:00", "wage": "1234.50"}
ANSWERS: Final = {
    "function": {**TIMES, "span": "-PT1.5S"},
    "a row": {"result": BEGINS},
    "query": {"rows": [{**SHIFT, "lasts": "P0DT07H30M00S"}]},
    "groups": {"groups": [{"begins_week": "2026-11-16", "last": BEGINS}]},
    "text": "a text",
    "http": {"open": 3},
    "one": {**SHIFT, "lasts": "P0DT07H30M00S"},
    "resource": {"begins": BEGINS, "lasts": "PT7H30M"},
    "prompt": "Who works on 18.11.2026?",
}


@pytest.mark.parametrize("vendor", ["sqlite", *long_cases(*DATABASES)])
def test_a_site_of_another_kind(vendor: str, tmp_path: Path) -> None:
    file = nullcontext(f"sqlite:///{tmp_path}/site.sqlite3")
    database = DATABASES[vendor]() if vendor in DATABASES else file
    with database as url, peer_in_thread() as peer:
        peer.send = answer({"open": 3})
        environment = shell_environment(
            DATABASE_URL=url,
            DJANGO_SETTINGS_MODULE="tests.othersite.settings",
            OTHERSITE_PEER=f"http://127.0.0.1:{peer.port}",
        )
        printed = run([sys.executable, "-c", PROGRAM], CHECKOUT, environment)
    report: dict[str, Any] = json.loads(printed)
    assert report["answers"] == ANSWERS
    assert report["failures"] == {}
    assert [each for each in report["missed"] if not OF_A_STATE.search(each)] == []
    of_tools = {"mcp_app_tool_version", "mcp_app_tool_rollback"}
    assert of_tools.isdisjoint(report["missed"])
    assert "ada@example.com  a laptop" in report["tokens"]
    said = "There is no active user whose email is “root”."
    assert report["nobody"] == said
