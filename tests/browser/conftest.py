"""The demo in Chromium, as staff see it; the rows are of this run alone."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.newcomer.demo import demo, demo_environment, password
from tests.newcomer.programs import CHECKOUT, Serving, run

NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
"""The one without a window needs two thirds of what the others do."""

FLAGS: Final = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-software-rasterizer",
    "--disable-sync",
    "--in-process-gpu",
    "--no-first-run",
    "--no-sandbox",
]
PATIENCE_MS: Final = 60_000

# It has its own, of five seconds; a page of ours is drawn again each five.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the demo's tables, and nothing in them yet."""
    database = tmp_path_factory.mktemp("migrated") / "demo.sqlite3"
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    run(migrate, CHECKOUT, demo_environment(database))
    return database


@pytest.fixture(scope="module")
def database(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it for the tests of a module."""
    copied = shutil.copy(migrated, tmp_path_factory.mktemp("demo") / "demo.sqlite3")
    return Path(copied)


@pytest.fixture(scope="module")
def served(database: Path) -> Iterator[Serving]:
    """Serve the demo for the tests of a module."""
    with demo(database) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium; skip the tests where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("Chromium is missing: apt-get install chromium-headless-shell.")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=program, args=FLAGS, headless=True
        )


@pytest.fixture
def page(browser: Browser, served: Serving, tmp_path: Path) -> Iterator[Page]:
    """Open a page of the demo; what its scripts complain about fails the test."""
    # It has its own cookies, and nothing in store.
    page = browser.new_page(base_url=served.url, color_scheme="light")
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    # What a route still does would fail whoever uses Chromium next.
    page.unroute_all(behavior="wait")
    page.close()
    assert complaints == []


@pytest.fixture
def staff(page: Page, served: Serving) -> Page:
    """Log in with the password that was printed."""
    log_in(page, served)
    return page


def log_in(page: Page, served: Serving) -> None:
    """Go from the front page into the admin."""
    page.goto("/")
    page.get_by_role("link", name="Open the admin").click()
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(password(served))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Site administration").wait_for()
