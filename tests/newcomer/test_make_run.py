"""`make run`, as a newcomer sees it.

The virtual environment is there already: a clone that makes its own takes minutes.
"""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.asgi_client import routing_headers
from tests.drill.ports import claimed, free_port
from tests.newcomer.demo import PASSWORD, demo, demo_environment, password, refused
from tests.newcomer.programs import CHECKOUT, Serving, run

pytestmark = pytest.mark.xdist_group("make run")


PUBLIC: Final = {"order_status", "book_table"}
INVOICES: Final = {"invoice_list", "invoice_get", "invoice_count"}
ADMIN: Final = {"admin_models", "admin_list", "admin_get", "admin_form"}
ORDERS: Final = {"find_orders", "add_note", "sales_report", "get_task_result"}
TEAM: Final = {*PUBLIC, *INVOICES, *ADMIN, *ORDERS, "wait_for_event", "read_skill"}


class Endpoint:
    """One server of the demo, as a client of the stateless era sees it."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self.token = token
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "newcomer", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        message["params"] = {**params, "_meta": meta}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            **routing_headers(message),
            **self._headers,
        }
        answer = httpx.post(self.url, headers=headers, json=message)
        result: dict[str, Any] = answer.json()["result"]
        return result

    def tools(self) -> set[str]:
        return {tool["name"] for tool in self.ask("tools/list")["tools"]}

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=name, arguments=arguments)


def team_of(served: Serving) -> Endpoint:
    [line] = re.findall(r'http shop-team (\S+) .*Bearer (\S+)"', served.output)
    return Endpoint(*line)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.sqlite3"


@pytest.fixture(scope="module")
def first_start(database: Path) -> Iterator[Serving]:
    with demo(database) as served:
        yield served


def test_what_it_prints_is_true(first_start: Serving) -> None:
    served = first_start
    assert f"MCP endpoint   {served.url}/mcp   (public)\n" in served.output
    assert f"Admin          {served.url}/admin/\n" in served.output
    assert f"--transport http shop {served.url}/mcp\n" in served.output
    assert httpx.get(served.url).status_code == 200
    # Another address of this machine: nobody serves there.
    with pytest.raises(httpx.ConnectError):
        httpx.get(served.url.replace("127.0.0.1", "127.0.0.2"))
    assert Endpoint(f"{served.url}/mcp").tools() == PUBLIC
    team = team_of(served)
    assert team.url == f"{served.url}/mcp/team"
    assert team.tools() == TEAM


def test_the_shop_answers(first_start: Serving) -> None:
    public, team = Endpoint(f"{first_start.url}/mcp"), team_of(first_start)
    status = public.call("order_status", number=1_300)["structuredContent"]
    assert status["placed"] == date.today().isoformat()
    unknown = public.call("order_status", number=1_301)
    assert unknown["content"][0]["text"] == "There is no order 1301."
    found = team.call("find_orders", customer="ada", status="sent", most=3)
    orders = found["structuredContent"]["result"]
    assert {each["customer"] for each in orders} == {"Ada Byron"}
    since = team.call("find_orders", since=status["placed"])["structuredContent"]
    assert 1_300 in {each["number"] for each in since["result"]}
    for text in ("Called.", "Called again."):
        noted = team.call("add_note", number=1_300, text=text)
    assert noted["content"][0]["text"].endswith("note: Called.\nCalled again.")
    [content] = team.ask("resources/read", uri="shop://orders/1300")["contents"]
    order = json.loads(content["text"])
    assert (order["note"], order["number"]) == ("Called.\nCalled again.", 1_300)
    assert order["lines"]
    # By its own pages, in a server with threads.
    call = {"model": "shop.order", "filters": {"status": "Sent"}, "sort": "-number"}
    sent = team.call("admin_list", **call)["structuredContent"]
    assert {each["status"] for each in sent["rows"]} == {"Sent"}
    assert sent["total"] > 100


def test_a_later_start_makes_nothing_and_says_so(
    first_start: Serving, database: Path
) -> None:
    """The first one may still serve."""
    with demo(database) as served:
        assert f"MCP endpoint   {served.url}/mcp   (public)\n" in served.output
        assert not PASSWORD.search(served.output)
        assert "manage.py changepassword admin\n" in served.output
        [made] = re.findall(
            r"^Token +made at the first start; another: \S+ manage.py (.+)$",
            served.output,
            re.MULTILINE,
        )
        command = [sys.executable, "manage.py", *shlex.split(made)]
        token = run(command, CHECKOUT, demo_environment(database)).split()[-1]
        placeholder = team_of(served)
        assert placeholder.token == "YOUR-TOKEN"
        assert Endpoint(placeholder.url, token).tools() == TEAM
        assert Endpoint(f"{served.url}/mcp").tools() == PUBLIC
    assert Endpoint(f"{first_start.url}/mcp").tools() == PUBLIC


@pytest.mark.long
def test_two_first_starts_at_once(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    with ThreadPoolExecutor() as threads, ExitStack() as stack:
        starts = [threads.submit(stack.enter_context, demo(database)) for _ in "12"]
        served = [each.result() for each in starts]
        assert sum(bool(PASSWORD.search(each.output)) for each in served) == 1
        for each in served:
            assert Endpoint(f"{each.url}/mcp").tools() == PUBLIC


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////nowhere/demo.sqlite3", "The database /nowhere/demo.sqlite3"),
        ("postgres://127.0.0.1:1/demo", "The database demo"),
    ],
)
def test_a_database_that_cannot_be_used(url: str, said: str) -> None:
    ended = refused(free_port(), url=url)
    assert f"{said} cannot be used" in ended
    assert "Check DATABASE_URL" in ended
    assert "Traceback" not in ended


def test_a_database_of_a_development_version(tmp_path: Path) -> None:
    """It is left alone."""
    file = tmp_path / "demo.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(OLD)
    said = refused(free_port(), file)
    assert "was made by a development version of django-mcp-app" in said
    assert "Traceback" not in said
    with closing(sqlite3.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("django_migrations",)]


OLD: Final = """
CREATE TABLE django_migrations (
    id integer PRIMARY KEY, app varchar(255), name varchar(255), applied datetime
);
INSERT INTO django_migrations (app, name) VALUES ('mcp_app', '0001_initial');
"""


@contextmanager
def staff(served: Serving) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, follow_redirects=True) as browser:
        browser.get("/admin/")
        form = {
            "username": "admin",
            "password": password(served),
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        browser.post("/admin/login/", data=form)
        yield browser


def test_the_pages_of_the_shop(first_start: Serving) -> None:
    with staff(first_start) as browser:
        assert "answer_a_complaint" in browser.get("/admin/mcp_app/prompt/").text
        orders = browser.get("/admin/shop/order/?q=ada&status=sent").text
        assert "Ada Byron" in orders
        assert "Grace Murray" not in orders
        [link] = set(re.findall(r"/admin/shop/order/\d+/change/", orders)[:1])
        assert "Lines" in browser.get(link).text.title()
        for page, text in {"product": "Kettle", "customer": "Hedy Kiesler"}.items():
            assert text in browser.get(f"/admin/shop/{page}/").text


def test_the_icon_that_browsers_ask_for(first_start: Serving) -> None:
    icon = httpx.get(f"{first_start.url}/favicon.ico", follow_redirects=True)
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/svg+xml")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    port = free_port()
    with closing(claimed(port)):
        said = refused(port, database)
    assert f"Another program uses the port {port} of 127.0.0.1." in said
    assert f"make run PORT={port + 1}" in said
    assert not database.exists()


@pytest.mark.parametrize("port", ["", "-1", "web", "0", "65536", "80 80", "٨٠"])
def test_what_is_no_port(port: str, tmp_path: Path) -> None:
    said = refused(port, tmp_path / "demo.sqlite3")
    assert f"PORT={port} is no port: it must be a number from 1 to 65535." in said
