"""@ai-sdk/mcp of Vercel: wrong access tokens, and events by webhook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.clients.guarded import SAID, Guarded, guarded
from tests.clients.node import report_of
from tests.drill.piped import environment
from tests.drill.running import ROOT
from tests.egress.certificates import write_certificate
from tests.egress.peer import LOOPBACK

pytestmark = pytest.mark.xdist_group("access tokens")

SCRIPT: Final = "ai_sdk.mjs"


def test_it_connects_with_a_token(guarded: Guarded) -> None:
    assert report_of(SCRIPT, guarded.url, guarded.token())["tools"] > 0


@pytest.mark.parametrize("shown", ["wrong", "missing"])
def test_it_says_why_it_is_refused(guarded: Guarded, shown: str) -> None:
    report = report_of(SCRIPT, guarded.url, guarded.refused[shown])
    assert SAID[shown] in report["error"]


EMITTING: Final = """
import itertools, time, django
django.setup()
from mcp_app import mcp
from tests.drill.functions.happening import Happened
for number in itertools.count():
    mcp.emit(Happened(number, "ab"[number % 2]))
    time.sleep(0.3)
"""


@pytest.mark.long
def test_it_subscribes_to_events(tmp_path: Path) -> None:
    """It lists, subscribes, refreshes with another secret, and unsubscribes."""
    write_certificate(tmp_path, "localhost")
    ca = str(tmp_path / "certificate.pem")
    given = {
        "HAPPENINGS": ".",
        "MCP_EVENTS": json.dumps({"networks": LOOPBACK, "ca": ca}),
    }
    with guarded(tmp_path, given) as site:
        env = {**environment(tmp_path / "db.sqlite3"), **given}
        command = [sys.executable, "-c", EMITTING]
        with subprocess.Popen(command, cwd=ROOT, env=env) as emitting:
            try:
                report = report_of(
                    "ai_sdk_events.mjs", site.url, site.token(), str(tmp_path)
                )
            finally:
                emitting.kill()
    assert report["listed"] == [["drill.happened", ["poll", "push", "webhook"]]]
    assert report["posts"][0] == "verification"
    assert report["posts"].count("verification") == 1
    assert report["sameId"]
    assert {each % 2 for each in report["events"]} == {0}
    # 401: signed with the secret that the client has just replaced.
    assert set(report["statuses"]) <= {200, 204, 401, 503}
    assert report["left"] == 0
    assert "error" not in report
