"""The official scenarios of authorization servers, with a person in Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.browser.chromium import allow
from tests.browser.conftest import SIGNED, open_page
from tests.conformance import suite
from tests.drill.ports import HOST, free_port
from tests.newcomer.programs import Serving

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(bool(suite.missing()), reason=suite.missing()),
]

ADDRESS: Final = re.compile(r"^.*/authorize\?.*\n", re.MULTILINE)


def test_both_scenarios_pass_without_a_warning(
    browser: Browser, served: Serving, keys: StorageState, tmp_path: Path
) -> None:
    port = free_port()
    registered = httpx.post(
        f"{served.url}/mcp-oauth/register",
        json={
            "client_name": "Conformance",
            "redirect_uris": [f"http://{HOST}:{port}/callback"],
        },
    )
    options = {
        "--url": served.url,
        "--client-id": registered.json()["client_id"],
        "--resource": f"{served.url}/mcp/{SIGNED}",
        "--port": str(port),
        "--output-dir": str(tmp_path),
    }
    with (
        suite.begun("authorization", options, tmp_path) as program,
        open_page(browser, served, storage_state=keys) as page,
    ):
        program.wait_until(lambda: bool(ADDRESS.findall(program.output)), 60)
        page.goto(ADDRESS.findall(program.output)[0])
        allow(page)
        expect(page.get_by_text("OK. You can close this page.")).to_be_visible()
        assert program.wait() == 0, program.output
    checks = suite.checks_in(tmp_path, "authorization-server")
    assert checks.keys() == {
        "authorization-server-metadata-endpoint",
        "authorization-code-grant",
    }
    for scenario, verdicts in checks.items():
        statuses = {each.status for each in verdicts}
        assert statuses == {"SUCCESS"}, (scenario, list(map(str, verdicts)))
