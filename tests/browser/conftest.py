"""The demo in Chromium, as staff see it; one of each for all tests of the room.

Tests make rows of their own names, and leave on what was on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Frame, Page, Route, StorageState, expect
from playwright.sync_api import Error as PlaywrightError

from tests.browser.chromium import PATIENCE_MS, chromium, page_of
from tests.browser.chromium import log_in as fill_in_login
from tests.browser.listening import Listening
from tests.clients.node import MODULES
from tests.drill.ports import free_port
from tests.egress.peer import LOOPBACK, Peer, Received, answer, peer_in_thread
from tests.helpdesk.running import HelpDesk, help_desk
from tests.newcomer.demo import demo, demo_environment, password
from tests.newcomer.programs import CHECKOUT, Serving, run

POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src data: *"
)
AXE: Final = MODULES / "axe-core" / "axe.min.js"

VIOLATIONS: Final = """async () =>
    (await axe.run(document, {preload: false, resultTypes: ["violations"]}))
    .violations.map(each =>
        [each.id, each.nodes.map(node => node.target).join(", ")])"""
"""What axe loads by itself would be inline styles, which a strict policy refuses."""

CLOSED: Final = "for-tokens"
SIGNED: Final = "for-programs"
KEEPER: Final = "kim"
"""Who keeps the shop: may make tools and publish them, and see what the shop has."""

HELPER: Final = "lee"
"""May do the same with tools, and see nothing of the shop."""

PASSWORD: Final = "a-Long-enough-1"

MADE: Final = f"""
from django.contrib.auth.models import Permission, User
from mcp_app.models import AccessToken, Server
from tests.admin.tasks.test_subscription_admin import subscription
subscription(position=2**50, due_ms=2**50)
for slug, title, access in (
    ({CLOSED!r}, "For tokens", "token"),
    ({SIGNED!r}, "For programs", "oauth token"),
):
    row = Server.objects.create(slug=slug, title=title, access=access)
    row.rows().publish([row])
rights = Permission.objects.filter(content_type__app_label="mcp_app")
names = "view_tool add_tool change_tool view_server behind publish try".split()
shop = Permission.objects.filter(content_type__app_label="shop")
for name in ({KEEPER!r}, {HELPER!r}):
    user = User.objects.create_user(name, password={PASSWORD!r}, is_staff=True)
    user.user_permissions.set(rights.filter(codename__in=names))
kim = User.objects.get(username={KEEPER!r})
kim.user_permissions.add(*shop.filter(codename__startswith="view_"))
print(AccessToken.objects.make(user=kim, name="browser", may="change")[1])
"""

PART: Final = """{"name": "Hydraulic hose 2 m", "price": 48.9, "stock": 17,
    "internal_cost": 21.35, "supplier": {"name": "Hydra GmbH", "iban": "DE12 5001"}}"""
PARTS: Final = """{"openapi": "3.1.0", "info": {"title": "Parts"}, "paths": {
    "/parts": {"get": {"operationId": "listParts", "summary": "List parts"}},
    "/parts/{sku}": {"get": {"operationId": "getPart", "summary": "One part by its SKU",
        "parameters": [{"name": "sku", "in": "path", "required": true, "schema": {}}],
        "responses": {"200": {"content": {"application/json": {"schema":
            {"properties": {"name": {}, "price": {}}}}}}}}},
    "/photos": {"post": {"requestBody": {"required": true,
        "content": {"multipart/form-data": {"schema": {}}}}}}}}"""
ABOUT_PARTS: Final = {"/api/parts/P-100": PART, "/api/openapi.json": PARTS}

# It has its own, of five seconds; a page of ours is drawn again each five.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.sqlite3"


@pytest.fixture(scope="package")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HelpDesk]:
    with help_desk(tmp_path_factory.mktemp("desk")) as desk:
        yield desk


@pytest.fixture(scope="package")
def parts() -> Iterator[Peer]:
    """Serve a supplier of parts, whose answers have more than clients may see."""
    with peer_in_thread() as peer:
        peer.send = _answer_about_parts
        yield peer


async def _answer_about_parts(request: Received, writer: asyncio.StreamWriter) -> None:
    content = ABOUT_PARTS.get(request.target.partition("?")[0])
    writer.write(answer(content or "{}", 200 if content else 404))
    await writer.drain()


@pytest.fixture(scope="package")
def upstream_port() -> int:
    """The port of another MCP server, the issue tracker: a test starts it."""
    return free_port()


@pytest.fixture(scope="package")
def served_shop(
    database: Path, desk: HelpDesk, parts: Peer, upstream_port: int
) -> Iterator[tuple[Serving, str]]:
    """Serve the demo, which has two more servers, more staff and three more sites.

    With it comes an access token of who keeps the shop.
    """
    supplier = {**parts.settings()["peer"], "title": "Parts supplier"}
    url = f"http://127.0.0.1:{upstream_port}/mcp"
    tracker = {"title": "Issue tracker", "mcp": True, "url": url, "networks": LOOPBACK}
    sites = {"helpdesk": desk.site, "parts": supplier, "tracker": tracker}
    with demo(database, sites) as served:
        manage = [sys.executable, "manage.py", "shell", "-v", "0", "-c", MADE]
        token = run(manage, CHECKOUT, demo_environment(database))
        yield served, token.strip()


@pytest.fixture(scope="package")
def served(served_shop: tuple[Serving, str]) -> Serving:
    return served_shop[0]


@pytest.fixture(scope="package")
def token(served_shop: tuple[Serving, str]) -> str:
    return served_shop[1]


@pytest.fixture
def client(served: Serving) -> Iterator[Listening]:
    with Listening(f"{served.url}/mcp") as listening:
        yield listening


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start Chromium; skip the tests where there is none.

    It ends with the room: tests that are asynchronous cannot run beside it.
    """
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def logged_in(browser: Browser, served: Serving) -> StorageState:
    with open_page(browser, served) as page:
        page.goto("/")
        page.get_by_role("link", name="Open the admin").click()
        log_in(page, "admin", password(served))
        return page.context.storage_state()


@pytest.fixture(scope="package")
def keys(browser: Browser, served: Serving) -> StorageState:
    with open_page(browser, served) as page:
        page.goto("/admin/")
        log_in(page, KEEPER, PASSWORD)
        return page.context.storage_state()


@contextmanager
def open_page(browser: Browser, served: Serving, **options: Any) -> Iterator[Page]:
    with page_of(browser, served.url, **options) as page:
        yield page


@pytest.fixture
def staff(browser: Browser, served: Serving, logged_in: StorageState) -> Iterator[Page]:
    with _without_complaints(browser, served, logged_in) as page:
        yield page


@pytest.fixture
def keeper(browser: Browser, served: Serving, keys: StorageState) -> Iterator[Page]:
    """Open a page as who keeps the shop; complaints of scripts fail the test.

    It is strict about what its pages may run.
    """
    with _without_complaints(browser, served, keys) as page, strictly(page):
        yield page


@pytest.fixture
def scriptless_keeper(
    browser: Browser, served: Serving, keys: StorageState
) -> Iterator[Page]:
    with open_page(
        browser, served, storage_state=keys, java_script_enabled=False
    ) as page:
        yield page


@contextmanager
def strictly(page: Page) -> Iterator[None]:
    def serve(route: Route) -> None:
        # Whoever left the page waits for no answer.
        with suppress(PlaywrightError):
            answer = route.fetch(max_redirects=0)
            headers = {**answer.headers, "content-security-policy": POLICY}
            route.fulfill(response=answer, headers=headers)

    refused: list[str] = []
    page.on(
        "console",
        lambda said: refused.append(said.text) if "Security" in said.text else None,
    )
    page.route("**/admin/**", serve)
    yield
    assert refused == []


@contextmanager
def _without_complaints(
    browser: Browser, served: Serving, state: StorageState
) -> Iterator[Page]:
    complaints: list[str] = []
    with open_page(browser, served, storage_state=state) as page:
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
        # What a route still does would fail whoever uses Chromium next.
        page.unroute_all(behavior="wait")
    assert complaints == []


@pytest.fixture
def scriptless(
    browser: Browser, served: Serving, logged_in: StorageState
) -> Iterator[Page]:
    with open_page(
        browser, served, storage_state=logged_in, java_script_enabled=False
    ) as page:
        yield page


def log_in(page: Page, name: str, password: str) -> None:
    fill_in_login(page, name, password)
    page.get_by_role("heading", name="Site administration").wait_for()


def violations(page: Page | Frame) -> dict[str, str]:
    """Return what axe finds: where, by the rule."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return dict(page.evaluate(VIOLATIONS))


@pytest.fixture(scope="session")
def axe() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: `make node` installs it.")
