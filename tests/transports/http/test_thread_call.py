"""Under WSGI the thread of a request runs quick sync tools, and all comes out alike."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from typing import Any, Final

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections
from django.utils.translation import get_language, override

from mcp_app import wsgi
from mcp_app.catalog import runnable
from mcp_app.catalog.runnable import QUICK_CALLS, QUICK_S, Pace
from mcp_app.models import Call
from mcp_app.process import current
from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.server.run import End
from mcp_app.transports.http import view
from mcp_app.transports.http.view import ThreadCall
from tests.behaviours import stage
from tests.drill.models import Ledger
from tests.marks import long_cases
from tests.streams.logging_rows import until
from tests.transports.http.differing import Both, Request, Seen, Step, call, planted
from tests.transports.http.test_plain_call import (
    CORPUS,
    IN_THREADS,
    SLOW,
    Crowd,
    bearing,
    both,
    crowd,
    drawn,
    forget_charges,
    mcp,
)

__all__ = ["both", "crowd", "mcp"]

pytestmark = pytest.mark.databases

IS_QUICK: Final = vars(Pace)["is_quick"]
ADD: Final = call("drill_add_sync", a=1, b=2)
OURS: Final = {"content-type", "content-length", "retry-after", "www-authenticate"}
TOKENS: Final = {"AUTHENTICATION": {"token": "mcp_app.authentication.access_token"}}


class Visit:
    """A request that comes by WSGI, in a thread of its own."""

    def __init__(self, site: Any, request: Request) -> None:
        self._site = site
        self._request = request
        self.status = 0
        self.headers: dict[str, str] = {}

    async def body(self) -> bytes:
        """Return the answer, once all of it has come."""
        return await asyncio.to_thread(self.answer)

    def answer(self) -> bytes:
        """Ask in this thread."""
        try:
            parts = self._site(self._environ(), self._begin)
            body = b"".join(parts)
            getattr(parts, "close", lambda: None)()
            return body
        finally:
            connections.close_all()

    def _begin(self, status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        self.status = int(status[:3])
        named = {name.lower(): value for name, value in headers}
        # In front of the site nothing has the headers of its middleware.
        self.headers = {each: named[each] for each in named if each in OURS}

    def _environ(self) -> dict[str, Any]:
        body = self._request.body
        path, _, query = self._request.path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
        for name, value in self._request.headers:
            key = name.upper().replace("-", "_")
            key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
            both = (environ[key], value) if f"HTTP_{key}" == key else (value,)
            environ[key] = ",".join(both)
        return environ


class Ways(Both):
    """Sends requests by WSGI: with the request's thread, and without."""

    site: Any
    process: Process

    def visit(self, request: Request) -> Any:
        return Visit(self.site, request)

    def turn_off(self, off: pytest.MonkeyPatch) -> None:
        off.setattr(view, "serve", lambda *_: None)

    async def seen(self, request: Request) -> Seen:
        found = await super().seen(request)
        assert not self.process.running.in_threads._owned
        return found


@pytest.fixture(params=["view", "front"])
async def ways(
    request: pytest.FixtureRequest,
    both: Both,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> Ways:
    """By the view, and with `mcp_app.wsgi` in front of the site."""
    monkeypatch.setattr(background, "_loop", process.loop)
    monkeypatch.setitem(current._alive, process.loop, process)
    monkeypatch.setattr(Pace, "is_quick", property(lambda _: True))
    made = Ways(both._application, process, monkeypatch)
    made.process = process
    handler = WSGIHandler()
    made.site = handler if request.param == "view" else wsgi.application(handler)
    return made


@pytest.mark.parametrize("is_atomic", [False, True])
async def test_the_corpus_is_answered_alike(
    ways: Ways, monkeypatch: pytest.MonkeyPatch, is_atomic: bool
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", is_atomic)
    # In the request's own thread, nobody would answer for that one.
    corpus = [each for each in CORPUS if b"hangs_sync" not in each.body]
    steps = [*IN_THREADS, *IN_THREADS] if is_atomic else corpus
    assert await ways.differences(steps) == []
    assert ways.plain >= 6
    seen = await ways.seen(call("rows"))
    assert (b"true" in seen.body) is is_atomic


@pytest.mark.parametrize(
    "mcp",
    [
        {"CALL_CONTEXT_MANAGERS": ["tests.server.context_managers.noting"]},
        {"AUDIT": "strict"},
        {"AUDIT": "off"},
    ],
)
async def test_other_settings_are_answered_alike(
    ways: Ways, mcp: dict[str, Any], process: Process
) -> None:
    if process.audit is None:
        for each in IN_THREADS:
            assert (await Visit(ways.site, each).body()).startswith(b'{"jsonrpc"')
        return
    assert await ways.differences(IN_THREADS) == []
    assert (ways.plain == 0) is (mcp.get("AUDIT") == "strict")


@pytest.mark.parametrize("mcp", [TOKENS])
async def test_who_asks_is_found_alike(ways: Ways, crowd: Crowd) -> None:
    steps: list[Step] = [
        bearing(dict(each.headers)["authorization"].split()[1], ADD)
        if isinstance(each, Request) and "authorization" in dict(each.headers)
        else each
        for each in crowd.steps()
    ]
    assert await ways.differences(steps) == []
    assert ways.plain > 20


@pytest.mark.parametrize("mcp", [{**TOKENS, "LIMITS": SLOW}])
async def test_who_calls_too_often_is_refused_alike(
    ways: Ways, process: Process, crowd: Crowd
) -> None:
    forget = partial(forget_charges, process.rates)
    steps: list[Step] = [
        forget,
        *[bearing(crowd.token, ADD)] * 9,
        bearing(crowd.outside, ADD),
    ]
    assert await ways.differences(steps) == []
    assert ways.plain >= 1


@pytest.mark.parametrize("count", [300, *long_cases(3_000)])
async def test_drawn_requests_are_answered_alike(ways: Ways, count: int) -> None:
    assert await ways.differences(drawn(count)) == []
    assert ways.plain > count // 20


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("self.end is not None or self._is_too_late()", "False"),
        ("if error is None else None", ""),
    ],
)
async def test_a_fault_is_found(ways: Ways, text: str, instead: str) -> None:
    steps = [*IN_THREADS, call("enters_slowly", line="fault")]
    with planted(ThreadCall, "run", text, instead):
        assert await ways.differences(steps)


def test_the_pace_of_a_function() -> None:
    """The first call is measured; after a slow one so many must be quick."""
    pace, found = Pace(), []
    for seconds in (QUICK_S / 2, QUICK_S, *[0.0] * QUICK_CALLS):
        found.append(pace.is_quick)
        pace.note_duration(seconds)
    assert found == [False, True, *[False] * QUICK_CALLS]
    assert pace.is_quick


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which tools ran."""
    names: list[str] = []
    run = ThreadCall._run_function

    def noting(each: ThreadCall) -> object:
        names.append(threading.current_thread().name)
        return run(each)

    monkeypatch.setattr(ThreadCall, "_run_function", noting)
    return names


async def test_a_tool_that_was_slow_goes_back_to_the_pool(
    ways: Ways, watched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "is_quick", IS_QUICK)
    tools, ran = ways.process.catalogs.by_slug["default"].tools, []
    # Other tests may have called it.
    tools["drill_add_sync"].runnable.pace.__init__()  # type: ignore[misc]
    for slowest in (60.0, 60.0, 60.0, 0.0, 60.0):
        monkeypatch.setattr(runnable, "QUICK_S", slowest)
        assert (await ways.seen(ADD)).status == 200
        ran.append(len(watched))
    assert ran == [0, 1, 2, 3, 3]
    assert "mcp-user-code" not in {each.partition("_")[0] for each in watched}


async def test_a_tool_that_hangs_takes_no_more_threads(
    ways: Ways, watched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "is_quick", IS_QUICK)
    tools = ways.process.catalogs.by_slug["default"].tools
    tools["enters_and_waits"].runnable.pace._doubts = 0
    visits = [Visit(ways.site, call("enters_and_waits", line="hung")) for _ in "ab"]
    asked = []
    # Nothing is fresh before the first heartbeat.
    await ways.seen(ADD)
    for each in visits:
        await ways.process.gate.wait_for_check()
        asked.append(asyncio.ensure_future(each.body()))
        await asyncio.to_thread(stage().entered_thread.wait, 60)
        await asyncio.sleep(2 * QUICK_S)
    assert len(watched) == 1
    assert len(ways.process.running.in_threads) == 1
    # So a stop would reach it.
    ways.process._hanging.cancel()
    ways.process._ticker.stop()
    monkeypatch.setattr(ways.process._ticker, "_watching", None)
    ways.process._look_for_hanging()
    assert ways.process._ticker._watching is not None
    stage().released_thread.set()
    await asyncio.gather(*asked)
    assert [each.status for each in visits] == [200, 200]


async def test_nothing_of_a_view_reaches_a_call_or_the_other_way(ways: Ways) -> None:
    site, left = ways.site, []

    def surrounded(*given: Any) -> Any:
        connection.tenant = "of a view"  # type: ignore[attr-defined]
        with override("de"):
            answer = site(*given)
            left.append((connection.tenant, get_language()))  # type: ignore[attr-defined]
        return answer

    for _ in range(2):
        body = await Visit(surrounded, call("surroundings")).body()
        assert b"of a view" not in body
        assert b" de" not in body
    # Behind the site's middleware, that has the last word about the language.
    assert {tenant for tenant, _ in left} == {"of a view"}
    assert "fr" not in {language for _, language in left}


async def test_a_tool_that_hangs_is_answered_late_and_taken_back(
    ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over while nobody can say so; its rows are undone all the same."""
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    visit = Visit(ways.site, call("enters_slowly", line="late"))
    body = await visit.body()
    assert b"did not finish within 0.03 seconds" in body
    assert not await Ledger.objects.filter(key="late").aexists()


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (End.STOPPED, 200, b"cancelled this call"),
        (End.SHUT_DOWN, 200, b"stopped before the call was done"),
    ],
)
async def test_a_call_that_is_ended_is_taken_back(
    ways: Ways,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    end: End,
    status: int,
    said: bytes,
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    scene = stage()
    visit = Visit(ways.site, call("enters_and_waits", line="ended"))
    asked = asyncio.ensure_future(visit.body())
    await asyncio.to_thread(scene.entered_thread.wait, 60)
    (running,) = process.running
    assert len(process.running) == 1
    running.stop(end)
    scene.released_thread.set()
    assert said in await asked
    assert visit.status == status
    assert not await Ledger.objects.filter(key="ended").aexists()
    assert not len(process.running)


@pytest.mark.parametrize("mcp", [{**TOKENS, "LIMITS": {"running_calls": 2}}])
async def test_calls_of_a_person_at_once_are_counted_together(
    ways: Ways, process: Process, crowd: Crowd
) -> None:
    scene = stage()
    waiting = bearing(crowd.token, call("enters_and_waits", line="both"))
    visits = [Visit(ways.site, waiting) for _ in range(2)]
    asked = [asyncio.ensure_future(each.body()) for each in visits]
    await until(lambda: len(process.running) >= 2)
    refused = Visit(ways.site, bearing(crowd.token, ADD))
    assert b"running calls" in await refused.body()
    assert refused.status == 429
    scene.released_thread.set()
    await asyncio.gather(*asked)
    assert [each.status for each in visits] == [200, 200]
    again = Visit(ways.site, bearing(crowd.token, ADD))
    await again.body()
    assert again.status == 200


async def test_the_drain_waits_for_a_call_and_refuses_others(
    ways: Ways, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = stage()
    visit = Visit(ways.site, call("enters_and_waits", line="drained"))
    asked = asyncio.ensure_future(visit.body())
    await asyncio.to_thread(scene.entered_thread.wait, 60)
    monkeypatch.setattr(process, "stopping", True)
    refused = Visit(ways.site, ADD)
    assert b"stopping" in await refused.body()
    assert refused.status == 503
    assert len(process.running) == 1
    scene.released_thread.set()
    await asked
    assert visit.status == 200


@pytest.mark.parametrize("mcp", [{"LIMITS": {"rates": False}}])
async def test_no_call_of_many_threads_is_lost_or_doubled(
    ways: Ways, process: Process
) -> None:
    """While the loop takes what they record, and writes it."""
    before = await Call.objects.acount()
    number, threads = 60, 8

    def ask(thread: int) -> int:
        asked = [call("drill_add_sync", a=thread, b=each) for each in range(number)]
        answers = [Visit(ways.site, each).answer() for each in asked]
        return sum(b'"structuredContent":{"result"' in each for each in answers)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(threads) as pool:
        asked = [loop.run_in_executor(pool, ask, each) for each in range(threads)]
        assert await asyncio.gather(*asked) == [number] * threads
    audit = process.audit
    assert audit is not None
    async with asyncio.timeout(60):
        while audit.has_pending:
            audit.write_pending()
            await asyncio.sleep(0.01)
    assert await Call.objects.acount() - before == number * threads
    assert not len(process.running)
