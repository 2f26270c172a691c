"""The endpoint under gunicorn: what HTTP shows of it, and its end."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients import facts
from tests.drill.databases import prepared_file
from tests.drill.people import add_superuser, page_of_tool
from tests.drill.running import THERE, DrillServer, started
from tests.process.raw_requests import ODD, statuses
from tests.process.streaming import JSON, Answer, Session, called, stateless_request
from tests.process.trying import Trier, fields_of

PATIENCE_S: Final = 60
TOKEN: Final = "of-the-scraper-01"
CALL: Final = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}


pytestmark = pytest.mark.programs


def prepared(directory: Path) -> Path:
    return Path(shutil.copy(prepared_file(), directory / "db.sqlite3"))


@dataclass(frozen=True, slots=True)
class Both:
    """Two deployments of one database, of which one has no streams."""

    database: Path
    streaming: DrillServer
    whole: DrillServer


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    file = prepared(tmp_path_factory.mktemp("both"))
    database = {"DATABASE_URL": f"sqlite:///{file}", **THERE}
    database["MCP_METRICS"] = json.dumps({"token": TOKEN})
    found = Both(file, started("uvicorn", database), started("gunicorn", database))
    yield found
    servers = found.whole, found.streaming
    assert [each.stop() for each in servers] == [0, 0], [
        each.output for each in servers
    ]


@pytest.fixture(scope="module")
def staff(both: Both) -> Trier:
    add_superuser(both.database)
    return Trier(both.whole.url.removesuffix("/mcp"))


@pytest.fixture
def server(both: Both) -> DrillServer:
    return both.whole


def asked(
    server: DrillServer,
    method: str,
    path: str = "/mcp",
    body: bytes | Iterable[bytes] = b"",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, str], Any]:
    url = f"{server.url.removesuffix('/mcp')}{path}"
    answer = Answer(url, method, headers or {}, body).whole()
    return answer.status, answer.headers, json.loads(answer.raw or b"null")


def test_a_body_that_comes_in_pieces(server: DrillServer) -> None:
    headers, body = stateless_request("tools/call", **CALL)
    pieces = (body[start : start + 7] for start in range(0, len(body), 7))
    status, _, answer = asked(server, "POST", body=pieces, headers=headers)
    assert (status, answer["result"]["content"][0]["text"]) == (200, "3")


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "GET"])
def test_what_is_allowed_needs_no_stream(server: DrillServer, method: str) -> None:
    _, told, _ = asked(server, method, headers=JSON)
    assert told["allow"] == "POST, DELETE, OPTIONS"


def test_no_stream_is_opened(server: DrillServer) -> None:
    session = Session(server.url)
    headers = {**session.headers, "Accept": "text/event-stream"}
    status, told, answer = asked(server, "GET", headers=headers)
    assert status == 405
    assert "GET" not in told["allow"]
    assert "stream" in answer["error"]["message"]
    assert session.close().whole().status == 204


CALLED: Final = stateless_request("tools/call", **CALL)
LISTENING: Final = stateless_request(
    "subscriptions/listen", notifications={"toolsListChanged": True}
)
EVENTS_ALONE: Final = ({**CALLED[0], "Accept": "text/event-stream"}, CALLED[1])
LARGE: Final = (JSON, b"x" * (5 * 1024 * 1024))
OLD: Final = ("/mcp/sse", "/mcp/messages?session_id=a")


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code", "words"),
    [
        ("POST", "/mcp", LARGE, 413, -32600, "larger than"),
        ("POST", "/mcp", EVENTS_ALONE, 406, -32600, "application/json"),
        *(("GET", path, (JSON, b""), 501, -32600, "WSGI") for path in OLD),
        *(("POST", path, (JSON, b""), 501, -32600, "WSGI") for path in OLD),
        ("POST", "/mcp", LISTENING, 404, -32601, ""),
    ],
)
def test_what_needs_a_stream_or_is_too_large(
    server: DrillServer,
    method: str,
    path: str,
    sent: tuple[dict[str, str], bytes],
    status: int,
    code: int,
    words: str,
) -> None:
    headers, body = sent
    found, _, answer = asked(server, method, path, body, headers)
    assert (found, answer["error"]["code"]) == (status, code)
    assert words in answer["error"]["message"]


def test_odd_requests_are_answered_as_under_asgi(both: Both) -> None:
    assert statuses(both.whole.url) == ODD
    assert statuses(both.streaming.url) == ODD


def test_health(server: DrillServer) -> None:
    assert asked(server, "GET", "/mcp/health")[::2] == (200, {"status": "ok"})


def test_metrics_are_those_of_both(both: Both) -> None:
    def told(server: DrillServer, token: str) -> Answer:
        headers = {"Authorization": f"Bearer {token}"}
        return Answer(f"{server.url}/metrics", "GET", headers).whole()

    for each in (both.whole, both.streaming):
        text = told(each, TOKEN).raw.decode()
        [count] = re.findall(r"^mcp_workers (.*)", text, re.MULTILINE)
        # The second worker of gunicorn begins with its first request.
        assert count in ("2.0", "3.0")
    whole, streaming = told(both.whole, "no"), told(both.streaming, "no")
    assert (whole.status, whole.raw) == (404, streaming.raw)


def test_a_foreign_host(server: DrillServer) -> None:
    with pytest.raises(json.JSONDecodeError):
        # Django's own page says it.
        asked(server, "POST", headers={**JSON, "Host": "evil.example"})


def test_a_session_goes_on_where_there_are_no_streams(both: Both) -> None:
    before = dropped(both.database)
    session = Session(both.streaming.url)
    standing = session.standing()
    beside = session.at(both.whole.url)
    (counted,) = beside.called("drill_count", n=3, delay_ms=0).whole().messages
    assert counted["result"]["content"] == [{"type": "text", "text": "done 3"}]
    (asked,) = beside.called("drill_ask", question="Why?").whole().messages
    assert asked["result"]["isError"]
    assert "stream" in asked["result"]["content"][0]["text"]
    uri = facts.WATCHED
    (watched,) = beside.request("resources/subscribe", uri=uri).whole().messages
    assert watched["result"] == {}
    beside.called("drill_touch", uri=uri).whole()
    standing.until(lambda each: b"notifications/resources/updated" in each.raw)
    # Here its process has a stream for all of that.
    *told, last = session.called("drill_count", n=3, delay_ms=0).whole().messages
    assert (len(told), "result" in last) == (3, True)
    assert beside.close().whole().status == 204
    standing.whole()
    until_dropped(both.database, before + 3)


def test_a_session_that_began_without_streams(both: Both) -> None:
    """The process that answers `initialize` decides what is offered."""
    session = Session(both.whole.url)
    beside = session.at(both.streaming.url)
    assert session.called("drill_add", a=1, b=2).whole().messages
    subscribed = session.request("resources/subscribe", uri=facts.WATCHED)
    (refused,) = subscribed.whole().messages
    assert refused["error"]["code"] == -32601
    *told, last = beside.called("drill_count", n=3, delay_ms=0).whole().messages
    assert (len(told), "result" in last) == (3, True)


def test_staff_try_it(both: Both, staff: Trier) -> None:
    path = page_of_tool(both.database, "drill_ask")
    form = {name: value or "Why?" for name, value in staff.fields(path).items()}
    asked = staff.read(path, form)
    assert "The tool asks:" in asked
    answers = {name: value or "Because." for name, value in fields_of(asked).items()}
    told = staff.read(path, {**answers, "answer": "accept"})
    assert "The tool asks:" not in told
    assert "Because." in told
    form = {**form, "once": staff.fields(path)["once"], "revision": "2025-11-25"}
    assert "stream" in staff.read(path, form)


def test_who_tries_gets_the_page_for_lines_too(both: Both, staff: Trier) -> None:
    path = page_of_tool(both.database, "drill_count")
    form = {name: value or "1" for name, value in staff.fields(path).items()}
    told = staff.read(path, form, {"Accept": "application/x-ndjson, text/html"})
    assert told.startswith("<!DOCTYPE html>")
    assert "done 1" in told


def until_dropped(database: Path, count: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while dropped(database) != count:
        assert time.monotonic() < end, dropped(database)
        time.sleep(0.1)


def dropped(database: Path) -> int:
    with closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        rows = connection.execute("SELECT report FROM mcp_app_worker").fetchall()
    return sum(json.loads(report)["dropped"] for (report,) in rows if report)


def test_its_end(tmp_path: Path) -> None:
    database = prepared(tmp_path)
    drill = started("gunicorn", {"DATABASE_URL": f"sqlite:///{database}", **THERE})
    try:
        call = called(drill.url, "drill_sleep", seconds=1)
        session = Session(drill.url)
        assert session.called("drill_add", a=1, b=2).whole().messages
    finally:
        status = drill.stop()
    assert status == 0, drill.output
    assert call.whole().messages[-1]["result"]
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM mcp_app_worker").fetchone() == (
            0,
        )
