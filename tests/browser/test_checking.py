"""The page *Check* in a browser: its script sends the probes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import PATIENCE_MS, log_in, page_of
from tests.browser.conftest import CLOSED, KEEPER
from tests.browser.test_publishing import picture, serious
from tests.drill.databases import prepared_file
from tests.drill.people import NAME, PASSWORD, add_superuser
from tests.drill.running import THERE, started
from tests.newcomer.demo import demo_environment
from tests.newcomer.programs import CHECKOUT, Serving, run
from tests.process.certificates import write_certificate
from tests.process.nginx import Nginx
from tests.process.test_proxies import ENVIRONMENT, FAULTS, problems
from tests.process.test_site_faults import told_by

# They share one demo.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("axe")]


def test_a_server_is_looked_at_from_outside_and_inside(staff: Page) -> None:
    staff.goto("/admin/mcp_app/server/")
    staff.get_by_role("link", name="/mcp", exact=True).click()
    staff.get_by_role("link", name="Check").click()
    staff.get_by_role("button", name="Look", exact=True).click()
    through = staff.get_by_role("region", name="Through the proxy")
    good = through.get_by_text("What a stream sends comes at once.")
    expect(good).to_be_visible(timeout=PATIENCE_MS)
    for said in (
        "This site answers.",
        "The Host arrives as it was sent.",
        "All headers of clients arrive.",
        "Refusals reach clients as they are sent.",
        "Requests are served side by side.",
    ):
        expect(through.get_by_text(said)).to_be_visible()
    expect(through.get_by_text("Problem:")).to_have_count(0)
    picture(staff, "check")
    staff.get_by_role("button", name="Look here").click()
    here = staff.get_by_role("region", name="Here")
    expect(here.get_by_role("status")).to_be_visible()
    # What came through the proxy stays.
    expect(good).to_be_visible()
    assert serious(staff) == []


def test_the_command_speaks_as_a_user(served: Serving, database: Path) -> None:
    """Where tokens alone let in: all revisions, with a token that is gone then."""
    command = [
        *(sys.executable, "manage.py", "mcp_check", f"{served.url}/mcp/{CLOSED}"),
        *("--server", CLOSED, "--user", KEEPER, "--json"),
    ]
    told = run(command, CHECKOUT, demo_environment(database))
    found = {each["rule"]: each for each in json.loads(told)}
    assert found["revisions"]["grade"] == "good", found["revisions"]
    assert found["processes"]["grade"] == "good", found
    assert "problem" not in {each["grade"] for each in found.values()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("checking")
    file = Path(shutil.copy(prepared_file(), folder / "db.sqlite3"))
    add_superuser(file)
    own = {**ENVIRONMENT, **THERE, "DATABASE_URL": f"sqlite:///{file}"}
    server = started("uvicorn", own)
    yield {**own, "PORT": str(server.port)}
    assert server.stop() == 0, server.output


@pytest.mark.long
def test_the_page_says_what_the_command_says(
    browser: Browser, site: dict[str, str], tmp_path: Path
) -> None:
    certificate = write_certificate(tmp_path / "site.pem")
    nginx = Nginx(tmp_path, int(site["PORT"]), {}, certificate)
    address = nginx.url.removesuffix("/mcp")
    try:
        with page_of(browser, address, ignore_https_errors=True) as page:
            page.goto("/admin/")
            log_in(page, NAME, PASSWORD)
            page.get_by_role("heading", name="Site administration").wait_for()
            page.goto("/admin/mcp_app/server/")
            page.get_by_role("link", name="/mcp", exact=True).click()
            page.get_by_role("link", name="Check").click()
            for fault in [name for name in FAULTS if name != "time-out"]:
                plant = FAULTS[fault][1]
                nginx.reconfigure(plant)
                _, findings = told_by(site, nginx.url, "--ca", str(certificate))
                page.reload()
                page.get_by_role("button", name="Look", exact=True).click()
                through = page.get_by_role("region", name="Through the proxy")
                answers = through.get_by_text("The address answers:")
                expect(answers).to_be_visible(timeout=PATIENCE_MS)
                told = through.locator(".mcp-note.bad").all_inner_texts()
                rule = FAULTS[fault][0]
                assert problems(findings) == [rule], findings
                [text] = told
                assert findings[rule]["what"] in text
                assert findings[rule]["line"] in text
    finally:
        nginx.stop()
