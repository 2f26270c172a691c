"""What strangers leave behind and take from others, who send as much as they can."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import Final

from benchmarks import servers
from benchmarks.client import WrongAnswerError, checked, open_session
from benchmarks.flooding import Flood, Honest, during, honest, raw
from benchmarks.guarded_server import guarded_call
from benchmarks.listening import raise_open_files
from benchmarks.load import Sample
from benchmarks.measuring import AtMost, Effort, Result, Subject
from benchmarks.messages import JsonObject, Request, call, initialize, is_sum, stateful
from benchmarks.postgres import Cluster, cluster
from benchmarks.processes import ROOT, Process
from benchmarks.rows import counted

SESSIONS: Final = 50_000
LARGE: Final = 10_000
UNKNOWN: Final = 20_000
BEARERS: Final = 10_000
FIRST_USES: Final = 2_000
UNASKED: Final = 10_000
DELETIONS: Final = 400
"""As many requests delete one session at once."""
STREAMS: Final = 500
SILENT: Final = 800
ANONYMOUS_SESSIONS: Final = 10_000
"""The default of the limit."""
PER_SECOND: Final = 500.0
BATCHES_S: Final = 60
BATCHES_A_SECOND: Final = 100
NAMES: Final = 10
"""Unknown tools in a batch."""
ROWS_A_SECOND: Final = 5
SLICE_S: Final = 5.0
INFO: Final = {"name": "stranger", "version": "1"}


def of_strangers(effort: Effort) -> Iterator[Result]:
    """Flood one process, one flood after another; with `--quick`, a tenth of each."""
    part = min(1.0, effort.counting / Effort().counting)
    raise_open_files()
    with ExitStack() as stack:
        database = stack.enter_context(cluster())
        server = stack.enter_context(servers.drill(database=database.url, rates=True))
        yield from _unknown_sessions(server, round(UNKNOWN * part))
        yield from _first_uses(server, round(FIRST_USES * part))
        yield from _unasked_answers(server, round(UNASKED * part))
        yield from _deletions(server, round(DELETIONS * part))
        yield from _unknown_tools(server, database, round(BATCHES_S * part))
        yield from _sessions(server, database, round(SESSIONS * part))
        yield from _large_sessions(server, database, round(LARGE * part))
        yield from _silent(server)
        yield from _bearers(server, database, round(BEARERS * part))


# -- sessions ------------------------------------------------------------------------


def _unknown_sessions(server: Process, number: int) -> Iterator[Result]:
    """Show session ids that nobody has; others call, and the health is asked for."""
    subject = Subject.asked(server, call("drill_add"), is_sum)
    quiet = [_sample(subject) for _ in range(3)]
    requests = (
        raw(server.port, stateful(secrets.token_urlsafe(32), "tools/list", {}), {})
        for _ in range(number)
    )
    flood = Flood(port=server.port, requests=requests, per_second=PER_SECOND)
    with honest(lambda: _healthy(server.port)) as health, during(flood) as sent:
        beside = [_sample(subject)]
        while not sent.done():
            beside.append(_sample(subject))
    _all_right(health)
    _only(flood, {404})
    alone, flooded = (median(each.p99 for each in some) for some in (quiet, beside))
    yield Result(
        figure=f"p99 beside {number:,} session ids that nobody has / alone",
        measured=flooded / alone,
        bound=AtMost(2),
        raw=f"{flooded:,.0f} : {alone:,.0f} us, {health.requests} times healthy",
    )


def _first_uses(server: Process, number: int) -> Iterator[Result]:
    """Use sessions for the first time, which is noted in their rows."""
    sessions = [_begun(server.port, initialize({})) for _ in range(number)]
    requests = [
        raw(server.port, stateful(each, "tools/list", {}), {}) for each in sessions
    ]
    what = f"{number:,} sessions in their first use"
    yield _beside(server, requests, {200}, what, per_second=float(number))


def _unasked_answers(server: Process, number: int) -> Iterator[Result]:
    """Answer questions that nobody asked, in one session."""
    session = stateful(open_session(server.port), "ping", {})
    answer = replace(session, message={"result": {}})
    requests = [raw(server.port, answer, {}, each) for each in range(number)]
    yield _beside(server, requests, {400}, f"{number:,} answers to no question")


def _deletions(server: Process, number: int) -> Iterator[Result]:
    """Delete each of some sessions with many requests at once."""
    sessions = [stateful(open_session(server.port), "ping", {}) for _ in range(6)]
    requests = [
        raw(server.port, session, {}).replace(b"POST", b"DELETE", 1)
        for session in sessions
        for _ in range(number)
    ]
    what = f"{len(sessions)} sessions deleted {number} times"
    yield _beside(server, requests, {204, 404}, what)


def _beside(
    server: Process,
    requests: list[bytes],
    statuses: set[int],
    what: str,
    per_second: float = PER_SECOND,
) -> Result:
    """Return how long others who open a session wait at most beside these requests."""
    flood = Flood(port=server.port, requests=iter(requests), per_second=per_second)
    with honest(lambda: open_session(server.port), pause_s=0.1) as others:
        flood.run()
    _all_right(others)
    _only(flood, statuses)
    return _waited(f"the longest wait of others beside {what}", others, 1)


def _sessions(server: Process, database: Cluster, number: int) -> Iterator[Result]:
    """Open sessions without end, beside one in use and others that begin."""
    request = raw(server.port, initialize({}), {})
    yield from _opened(server, database, [request] * number, "initialize", 2)


def _large_sessions(
    server: Process, database: Cluster, number: int
) -> Iterator[Result]:
    large = raw(server.port, _initialize(clientInfo={**INFO, "title": "x" * 2**20}), {})
    what = "initialize of 1 MiB"
    yield from _opened(server, database, [large] * number, what, 5, connections=16)


def _opened(
    server: Process,
    database: Cluster,
    requests: list[bytes],
    what: str,
    most_s: float,
    connections: int = 64,
) -> Iterator[Result]:
    own = stateful(open_session(server.port), "tools/list", {})
    flood = Flood(
        port=server.port,
        requests=iter(requests),
        per_second=PER_SECOND,
        connections=connections,
    )

    def use() -> None:
        checked(server.port, own, lambda result: "tools" in result)
        open_session(server.port)

    with honest(use) as others, during(flood):
        pass
    _all_right(others)
    _only(flood, {200})
    name = f"{len(requests):,} times {what}"
    yield _waited(f"the longest wait of others beside {name}", others, most_s)
    rows = counted(database.url)["session"]
    yield Result(
        figure=f"rows after {name}",
        measured=rows,
        # A process closes those above it after it has opened others.
        bound=AtMost(ANONYMOUS_SESSIONS * 1.01),
        raw=f"{others.requests} times a session was used and one opened meanwhile",
    )


def _silent(server: Process) -> Iterator[Result]:
    """Open streams of the transport before sessions, and sessions that say nothing."""
    get = f"GET /mcp/sse HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    stream = f"{get}Accept: text/event-stream\r\n\r\n".encode()
    begin = raw(server.port, initialize({}), {})
    with ExitStack() as stack:
        for request in [stream] * STREAMS + [begin] * SILENT:
            address = ("127.0.0.1", server.port)
            connection = stack.enter_context(socket.create_connection(address, 30))
            connection.sendall(request)
        with honest(lambda: open_session(server.port), pause_s=0.1) as others:
            time.sleep(10)
    _all_right(others)
    figure = f"initialize beside {STREAMS} streams and {SILENT} silent connections"
    yield _waited(figure, others, 2)


# -- calls and tokens ----------------------------------------------------------------


def _unknown_tools(
    server: Process, database: Cluster, seconds: int
) -> Iterator[Result]:
    """Call tools that do not exist, in batches of the revision that has them."""
    session = _begun(server.port, _initialize(protocolVersion="2025-03-26"))
    own = stateful(session, "", {})
    headers = {**own.headers, "MCP-Protocol-Version": "2025-03-26"}
    lines = {"Host": f"127.0.0.1:{server.port}", **headers}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    begin = f"POST /mcp HTTP/1.1\r\n{text}Content-Length: "

    def batch(number: int) -> bytes:
        # An id of a call that is running is refused.
        calls = [_call_of_nothing(number * NAMES + each) for each in range(NAMES)]
        body = json.dumps(calls)
        return f"{begin}{len(body)}\r\n\r\n{body}".encode()

    began = time.monotonic()
    flood = Flood(
        port=server.port,
        requests=map(batch, range(seconds * BATCHES_A_SECOND)),
        per_second=BATCHES_A_SECOND,
        connections=8,
    )
    flood.run()
    took = time.monotonic() - began
    _only(flood, {200})
    time.sleep(2)
    with database.connected() as connection:
        found = connection.execute(_OF_NOTHING).fetchone()
    rows = int(found[0]) if found else 0
    yield Result(
        figure="rows a second of calls of what does not exist",
        measured=rows / took,
        # Those of the first second, and of the last that has begun.
        bound=AtMost(ROWS_A_SECOND * (1 + 1 / took)),
        unit="/s",
        raw=f"{rows} of {seconds * BATCHES_A_SECOND * NAMES:,} calls in {took:.0f} s",
    )


def _call_of_nothing(number: int) -> JsonObject:
    params = {"name": f"no{number % NAMES}"}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


_OF_NOTHING: Final = "SELECT count(*) FROM mcp_app_call WHERE outcome = 'unknown'"


def _initialize(**changed: object) -> Request:
    request = initialize({})
    params = {**request.message["params"], **changed}
    return replace(request, message={**request.message, "params": params})


def _begun(port: int, request: Request) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/mcp", request.body(), dict(request.headers))
    answer = connection.getresponse()
    session = answer.headers["Mcp-Session-Id"]
    connection.close()
    if not session:
        raise WrongAnswerError(f"initialize opened no session: HTTP {answer.status}.")
    return session


def _bearers(server: Process, database: Cluster, number: int) -> Iterator[Result]:
    """Show tokens that nobody has, beside somebody with one that is not cached."""
    request = guarded_call(server, database.url)
    tokens = _tokens(database.url)
    requests = (
        raw(server.port, _by(request, f"mcp_{secrets.token_urlsafe(32)}"), {})
        for _ in range(number)
    )
    flood = Flood(port=server.port, requests=requests, per_second=PER_SECOND)

    def use() -> None:
        checked(server.port, _by(request, next(tokens)), is_sum)

    before, began = database.statements(_LOOKUP), time.monotonic()
    with honest(use) as others, during(flood):
        pass
    took = time.monotonic() - began
    _all_right(others)
    _only(flood, {401})
    asked = (database.statements(_LOOKUP) - before) / took
    what = f"beside {number:,} tokens that nobody has"
    yield _waited(f"the longest wait of others {what}", others, 1)
    yield Result(
        figure=f"look-ups of tokens a second {what}",
        measured=asked,
        bound=AtMost(20),
        unit="/s",
        raw=f"{number / took:,.0f} were shown a second",
    )


_LOOKUP: Final = 'FROM "mcp_app_accesstoken"'
_MAKE: Final = """
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import AccessToken
user = User.objects.get(username="benchmark")
for number in range(200):
    print(AccessToken.objects.make(
        user=user, name=f"token {number}", may=AccessToken.May.CHANGE
    )[1])
"""


def _tokens(url: str) -> Iterator[str]:
    """Make tokens of who may call; no process has seen them."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.drill.settings", "DATABASE_URL": url}
    made = subprocess.run(
        [sys.executable, "-c", _MAKE],
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return iter(made.stdout.split())


def _by(request: Request, token: str) -> Request:
    headers = {**request.headers, "Authorization": f"Bearer {token}"}
    return replace(request, headers=headers)


# -- looking -------------------------------------------------------------------------


def _healthy(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/mcp/health")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise WrongAnswerError(f"The health is HTTP {answer.status}.")


def _sample(subject: Subject) -> Sample:
    return subject.sample(SLICE_S, connections=4, pause_ms=8)


def _waited(figure: str, others: Honest, most_s: float) -> Result:
    return Result(
        figure=figure,
        measured=others.longest_s,
        bound=AtMost(most_s),
        unit="s",
        raw=f"{others.requests} requests, all answered",
    )


def _all_right(others: Honest) -> None:
    if others.wrong or not others.requests:
        wrong = f"{len(others.wrong)} of {others.requests}"
        raise WrongAnswerError(f"Others had wrong answers, {wrong}: {others.wrong[:1]}")


def _only(flood: Flood, statuses: set[int]) -> None:
    if set(flood.statuses) != statuses:
        raise WrongAnswerError(f"The flood was answered with {flood.statuses}.")
