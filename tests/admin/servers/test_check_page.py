"""The page *Check* of a server: who may, and what a browser may say."""

from __future__ import annotations

import json
from html import unescape
from typing import Any, Final

import pytest
from django.test import Client
from pytest_django import Settings

from mcp_app.models import Server, Worker
from mcp_app.transports.http.probe import PROBE_HEADERS, Probe, read_ticket
from mcp_app.workbench.checking.observing import MAX_PAGE_BYTES
from tests.admin.pages import Queries, Staff, page_of, text_of
from tests.published import published

pytestmark = pytest.mark.django_db

URL: Final = "http://localhost:8000/mcp"
EVIL: Final = "<script>alert(1)</script>"
REPORT: Final = {
    "mcp_probe": 1,
    "probe": "ticks",
    "host": "localhost:8000",
    "scheme": "http",
    "forwarded": {},
    "headers": dict.fromkeys(PROBE_HEADERS, "as sent"),
    "body": 40,
    "process": "here 1",
    "interface": "ASGI",
    "clock_ms": 1_000,
    "database_ms": 1_000,
}


@pytest.fixture
def server() -> Server:
    return published(Server(slug="team", access="public"))


@pytest.fixture
def url(server: Server) -> str:
    return page_of(server, "check")


def stream(report: dict[str, Any], ticks: int = 5) -> dict[str, Any]:
    """Return what a browser sees of a stream."""
    events = [report, *({"tick": n} for n in range(ticks)), {"end": True}]
    parts = [
        [n * 0.25, f"data: {json.dumps(each)}\n\n"] for n, each in enumerate(events)
    ]
    headers = {"content-type": "text/event-stream"}
    return {"status": 200, "headers": headers, "parts": parts, "seconds": 2}


def sent(client: Client, url: str, body: object) -> Any:
    given = body if isinstance(body, bytes) else json.dumps(body)
    return client.post(url, given, content_type="application/json")


def test_it_is_a_tab_of_servers(admin_client: Client, server: Server, url: str) -> None:
    assert url in text_of(admin_client, server)
    checked = admin_client.get(url)
    assert "no-store" in checked.headers["Cache-Control"]
    command = "mcp_check http://testserver/mcp/team --server team"
    assert command in unescape(checked.content.decode())


def test_its_script_gets_tickets(
    admin_client: Client, url: str, settings: Settings
) -> None:
    limits = {"LIMITS": {"heartbeat": 55}}
    settings.MCP = {"PUBLIC_URL": "https://mcp.example.com/mcp", **limits}
    shown = admin_client.get(url)
    plan = json.loads(shown.context["plan"])
    assert plan["path"] == "/mcp/team"
    assert plan["origin"] == "https://mcp.example.com"
    assert plan["silence"] == 60
    for probe in Probe:
        assert read_ticket(plan["tickets"][probe], "team") is probe
        assert read_ticket(plan["tickets"][probe], "default") is None


def test_what_a_browser_has_seen_is_judged(
    admin_client: Client, url: str, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    lost = {**REPORT, "host": "upstream"}
    answers = {"ticks": stream(lost)}
    said = sent(admin_client, url, {"url": URL, "answers": answers})
    shown = unescape(said.content.decode())
    assert said.status_code == 200
    assert "The Host that arrives is “upstream”, not “localhost”." in shown
    assert "proxy_set_header Host $http_host;" in shown
    assert shown.index("Problem:") < shown.index("Good:")
    # A browser says of a redirect only that there is one.
    answered = {"status": 0, "headers": {}, "parts": [], "seconds": 0}
    moved = {**answered, "failure": "redirect"}
    said = sent(admin_client, url, {"url": URL, "answers": {"ticks": moved}})
    assert "redirects to another address" in said.content.decode()


def test_a_proxy_that_loses_the_host_does_not_stop_the_judgement(
    staff: Staff, url: str
) -> None:
    """Django refuses forms then; what is judged changes nothing."""
    client = staff("view_server", "stop")
    client.handler.enforce_csrf_checks = True
    assert sent(client, url, {"url": URL, "answers": {}}).status_code == 200
    assert client.post(url).status_code == 403


def test_here_needs_the_right_to_stop(staff: Staff, url: str) -> None:
    client = staff("view_server")
    shown = client.get(url)
    assert shown.status_code == 200
    assert "disabled" in shown.content.decode()
    assert client.post(url).status_code == 403
    assert "Stopping and starting needs" in shown.context["why_not_here"]


def test_nobody_else_may_see_it(staff: Staff, url: str) -> None:
    client = staff("view_tool", "stop")
    assert client.get(url).status_code == 403
    assert sent(client, url, {"url": URL, "answers": {}}).status_code == 403
    client.logout()
    assert client.get(url).status_code == 302


def test_here_says_what_the_processes_run(staff: Staff, url: str) -> None:
    client = staff("view_server", "stop")
    for number in (1, 2):
        report = json.dumps({"code": "abc", "keys": f"0000000{number}"})
        Worker.objects.create(
            id=f"w{number}",
            host="box",
            pid=number,
            started_ms=0,
            seen_ms=2**50,
            report=report,
        )
    assert "Processes have different secret keys." in client.post(url).content.decode()


def test_whether_it_is_ready_for_a_directory(staff: Staff, url: str) -> None:
    shown = unescape(staff("view_server", "stop").post(url).content.decode())
    folded = shown.partition("Ready for a directory?</span></summary>")[2]
    assert "The server does not say its title, description" in folded
    assert folded.index("Problem:") < folded.index("A privacy policy at a public")


def test_it_takes_few_statements(
    admin_client: Client, url: str, django_assert_max_num_queries: Queries
) -> None:
    admin_client.get(url)
    # Two are those of the session and its user.
    with django_assert_max_num_queries(6 + 2):
        admin_client.get(url)


BAD: Final[list[object]] = [
    b"no JSON",
    b"[" * 100_000,
    b'{"url": "\xff"}',
    [],
    {"url": URL},
    {"url": 7, "answers": {}},
    {"url": "javascript:alert(1)", "answers": {}},
    {"url": "http://[", "answers": {}},
    {"url": "http://localhost/" + "x" * 2_000, "answers": {}},
    {"url": URL, "answers": []},
    {"url": URL, "answers": {"other": {}}},
    *(
        {"url": URL, "answers": {"ticks": {**stream(REPORT), **odd}}}
        for odd in (
            {"status": 10**400},
            {"seconds": float("nan")},
            {"seconds": 10**308},
            {"seconds": 10**400},
            {"parts": [[10**400, "x"]]},
            {"failure": "other"},
            {"parts": [[0, "\ud800"]]},
            {"parts": [[0, "x"]] * 999},
            {"headers": {"a": 7}},
        )
    ),
    {"url": URL, "answers": {"ticks": {}}},
    b"x" * 10_000_000,
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_no_script_of_ours_sends(
    admin_client: Client, url: str, number: int
) -> None:
    said = sent(admin_client, url, BAD[number])
    assert said.status_code == 400
    assert said.headers["Content-Type"] == "text/plain"
    assert said.content
    if number == len(BAD) - 1:
        assert str(MAX_PAGE_BYTES) in said.content.decode()


@pytest.mark.parametrize(
    "report",
    [
        dict.fromkeys(REPORT, EVIL) | {"mcp_probe": 1},
        {**REPORT, "host": EVIL, "process": EVIL, "interface": EVIL, "scheme": EVIL},
        {**REPORT, "headers": dict.fromkeys(PROBE_HEADERS, EVIL), "clock_ms": 10**14},
        {**REPORT, "clock_ms": 10**300, "database_ms": -(10**300)},
        {**REPORT, "forwarded": {EVIL: EVIL}, "body": 10**300, "process": EVIL},
    ],
)
def test_made_up_reports_are_no_markup(
    admin_client: Client, url: str, report: dict[str, Any]
) -> None:
    evil = {"content-type": EVIL, "location": EVIL, "content-encoding": EVIL}
    one = stream(report)
    moved = {**one, "status": 301, "headers": {**evil, "server": EVIL}}
    strange = {**one, "headers": {**one["headers"], **evil, "server": f"nginx{EVIL}"}}
    for ticks in (one, moved, {**strange, "status": 404}, {**strange, "status": 200}):
        answers = dict.fromkeys(("body", "refusal", "beside", "slash"), moved)
        answers |= {"ticks": ticks, "hold": one, "silence": one}
        said = sent(admin_client, url, {"url": URL, "answers": answers})
        assert said.status_code == 200
        assert "<script" not in said.content.decode()
