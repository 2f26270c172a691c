"""How many instructions a call takes in one process, without sockets.

Callgrind (valgrind) counts the instructions of one thread in user mode, from the
headers of a request to the last byte of its answer: run as a program, this module
prepares a site, calls it, and prints the names of the counts.  Counts repeat within
1 %, which times do not, so that a call which gets 3 % dearer is seen.

Only what runs inside `ffi_call` is counted: nothing but `_Counter` calls it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from benchmarks.client import WrongAnswerError
from benchmarks.load import Answer, LoadGeneratorMissingError
from benchmarks.messages import FIRST_ID, Request, call, initialize, is_sum, stateful
from benchmarks.processes import ROOT, ServerFailedError

CALLS: Final = 200
WARM_UP: Final = 1_000
PORT: Final = 8000
FOLLOWED: Final = b'"progressToken":%d,"traceparent":"00-%032x-%016x-01",'
TRACED: Final = 2_000
"""Different headers of requests, more than any table keeps."""
PATIENCE_S: Final = 600

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


# -- the process that counts the others ---------------------------------------------


def find_valgrind() -> str:
    """Return the program, or raise `LoadGeneratorMissingError`."""
    program = shutil.which("valgrind")
    if program is None:
        raise LoadGeneratorMissingError("Instructions need valgrind on the PATH.")
    return program


def environment_in(folder: Path) -> dict[str, str]:
    """Return the environment of what is counted, with a database in the folder."""
    return {
        "DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
        # The order of dictionaries of strings is the same in each run.
        "PYTHONHASHSEED": "0",
    }


def measured(audit: str) -> dict[str, float]:
    """Return the instructions of a call, by name; `audit` is `MCP_AUDIT`."""
    program = find_valgrind()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        out = Path(folder, "counted")
        ended = subprocess.run(
            [
                *(program, "--tool=callgrind", f"--callgrind-out-file={out}"),
                # It is switched on later: preparing takes longer than the calls.
                "--instr-atstart=no",
                *("--toggle-collect=ffi_call", "--dump-after=ffi_call"),
                *(sys.executable, "-m", "benchmarks.instructions"),
            ],
            cwd=ROOT,
            env={**os.environ, **environment_in(Path(folder)), "MCP_AUDIT": audit},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if ended.returncode:
            raise ServerFailedError(ended.stderr[-2000:])
        names: list[str] = json.loads(ended.stdout.splitlines()[-1])
        # One was written after each count, and the last at the exit.
        numbers = sorted(int(each.suffix[1:]) for each in out.parent.glob("counted.*"))
        totals = [read_total(out.with_suffix(f".{each}")) for each in numbers]
    found: dict[str, float] = {}
    for name, total in zip(names, totals[-len(names) :], strict=True):
        found[name] = min(found.get(name, math.inf), total / CALLS)
    return found


def read_total(path: Path) -> int:
    """Return the sum in a file that Callgrind wrote."""
    match = re.search(r"^(?:totals|summary): (\d+)$", path.read_text(), re.MULTILINE)
    if match is None:
        raise ServerFailedError("Callgrind wrote no total.")
    return int(match[1])


# -- the process that is counted ----------------------------------------------------


class _Counter:
    """Runs functions so that Callgrind counts them, and notes their names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._call = ctypes.pythonapi.PyObject_CallNoArgs
        self._call.argtypes = [ctypes.py_object]
        self._call.restype = ctypes.py_object

    def count(self, name: str, function: Callable[[], object]) -> None:
        """Count what the function takes, as one more value of this name."""
        if not self.names:
            command = ["callgrind_control", "-i", "on", str(os.getpid())]
            subprocess.run(command, check=True, capture_output=True)
        self.names.append(name)
        self._call(function)


class _Site:
    """The ASGI application and one request, again and again with a new id."""

    def __init__(
        self,
        application: Asgi,
        request: Request,
        *,
        traced: bool = False,
        followed: bool = False,
    ) -> None:
        """With `traced` each request has a `traceparent` and an id of its own.

        With `followed` its `_meta` has a token for progress and a trace.
        """
        self._application = application
        self.request, self._followed = request, followed
        length = str(len(self.body_of(FIRST_ID)))
        lines = [*request.lines(PORT), ("Content-Length", length)]
        self._headers = [(name.lower().encode(), text.encode()) for name, text in lines]
        trace, identifier = b"00-%032x-%016x-01", b"x-request-id"
        more = [
            [(b"traceparent", trace % (n, n)), (identifier, b"%d" % n)]
            for n in range(TRACED if traced else 0)
        ]
        self._more = cycle(more or [[]])
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    def body_of(self, identifier: int) -> bytes:
        """Return a body with that id."""
        body = self.request.body(identifier)
        if not self._followed:
            return body
        members = FOLLOWED % (identifier, identifier, identifier)
        return body.replace(b'"_meta":{', b'"_meta":{' + members)

    async def ask(self, body: bytes) -> None:
        """Send one request; keep what came."""
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "root_path": "",
            "headers": [*self._headers, *next(self._more)],
            "extensions": {},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                self.status, self.headers = event["status"], event["headers"]
            else:
                self.body = event["body"]

        await self._application(scope, receive, send)

    def check(self) -> Answer:
        """Return the last answer; raise `WrongAnswerError` if it is not the sum."""
        if self.status != 200 or not is_sum(json.loads(self.body).get("result", {})):
            raise WrongAnswerError(f"HTTP {self.status}: {self.body[:500]!r}")
        headers = [(name.decode(), value.decode()) for name, value in self.headers]
        return Answer(self.body, b"", headers)


def _at_once(site: _Site, bodies: Sequence[bytes]) -> Callable[[], None]:
    """Return a function that runs calls which never wait, so that nothing else runs."""

    def run() -> None:
        for body in bodies:
            try:
                site.ask(body).send(None)
            except StopIteration:
                continue
            raise RuntimeError("A call waited.")

    return run


def main() -> None:
    """Prepare a database of its own, count, print the names of the counts."""
    import django  # noqa: PLC0415 - its settings are chosen by the environment

    django.setup()
    from tests.drill.preparing import prepare  # noqa: PLC0415

    prepare()
    counter = _Counter()
    loop = asyncio.new_event_loop()
    _Run(counter, loop).all()
    print(json.dumps(counter.names), flush=True)


class _Run:
    """One process, whose caches are made to look fresh while it is counted."""

    def __init__(self, counter: _Counter, loop: asyncio.AbstractEventLoop) -> None:
        from mcp_app.asgi import application  # noqa: PLC0415 - after Django's setup

        self._counter = counter
        self._loop = loop
        self._application: Asgi = application(refuse_all)
        self._next = FIRST_ID

    def all(self) -> None:
        """Count the floor and the calls; of a sync tool what the loop's thread does."""
        from mcp_app.process import running  # noqa: PLC0415

        # Under valgrind every call takes longer than that, and would get a timer.
        running.LASTING_AFTER = 60.0
        bare = _Site(self._application, call("drill_add"))
        answer = self._alone("stateless", bare)
        self._floor(answer)
        traced = _Site(self._application, call("drill_add"), traced=True)
        self._alone("traced", traced)
        followed = _Site(self._application, call("drill_add"), followed=True)
        self._alone("followed", followed)
        self._in_tasks("sync", _Site(self._application, call("drill_add_sync")), 8)
        session = self._open_session()
        self._in_tasks("session", _Site(self._application, session))
        guarded = self._loop.run_until_complete(_guarded())
        self._alone("guarded", _Site(self._application, guarded))
        self._loop.run_until_complete(_close())

    def _alone(self, name: str, site: _Site) -> Answer:
        """Count calls that need no task, three times."""

        async def count() -> None:
            for body in self._bodies(site, WARM_UP):
                await site.ask(body)
            for _ in range(3):
                bodies = self._bodies(site, CALLS)
                # Whoever waits does it now.
                await site.ask(*self._bodies(site, 1))
                _pin()
                self._counter.count(name, _at_once(site, bodies))

        self._loop.run_until_complete(count())
        return site.check()

    def _in_tasks(self, name: str, site: _Site, together: int = 1) -> None:
        """Count calls that wait, three times; the least counts.

        What else the loop does now and then (a heartbeat) is counted with them.
        """

        async def ask(bodies: Sequence[bytes]) -> None:
            for body in bodies:
                await site.ask(body)

        self._loop.run_until_complete(ask(self._bodies(site, WARM_UP)))
        for _ in range(3):
            bodies = self._bodies(site, CALLS)

            async def one_more() -> None:
                await ask(self._bodies(site, 1))
                _pin()

            self._loop.run_until_complete(one_more())
            parts = [ask(bodies[first::together]) for first in range(together)]
            run = partial(self._loop.run_until_complete, _all(parts))
            self._counter.count(name, run)
        site.check()

    def _floor(self, answer: Answer) -> None:
        cut = Answer.cut(
            re.sub(rb'"id":\d+', b'"id":%d' % FIRST_ID, answer.before), answer.headers
        )
        from benchmarks.servers import keep_answer  # noqa: PLC0415

        with keep_answer(cut) as environment:
            os.environ.update(environment)
            from benchmarks.floors import application  # noqa: PLC0415

        self._alone("floor", _Site(application, call("drill_add")))

    def _open_session(self) -> Request:
        opening = _Site(self._application, initialize())
        self._loop.run_until_complete(opening.ask(initialize().body()))
        session = dict(opening.headers)[b"mcp-session-id"].decode()
        ready = stateful(session, "notifications/initialized", {})
        told = _Site(self._application, ready)
        message = {"jsonrpc": "2.0", **ready.message}
        self._loop.run_until_complete(told.ask(json.dumps(message).encode()))
        return call("drill_add", session=session)

    def _bodies(self, site: _Site, count: int) -> list[bytes]:
        """Return bodies that differ in their ids."""
        self._next += count
        ids = range(self._next - count, self._next)
        return [site.body_of(each) for each in ids]


async def _all(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*works)


def _pin() -> None:
    """Let the caches count as fresh: a check would take its time from the calls."""
    from mcp_app.process.current import process  # noqa: PLC0415

    gate = process().gate
    gate._quiet_until = gate._fresh_until = math.inf


async def _guarded() -> Request:
    """Guard the endpoint and the tool; return a call that may pass."""
    from asgiref.sync import sync_to_async  # noqa: PLC0415

    from benchmarks.guarding import guard  # noqa: PLC0415
    from mcp_app.process.current import process  # noqa: PLC0415

    token: str = await sync_to_async(guard)()
    await process().gate.wait_for_check()
    return call("drill_add").with_token(token)


async def _close() -> None:
    from mcp_app.process.current import process  # noqa: PLC0415

    process().close()


async def refuse_all(*_: object) -> None:
    """Stand for the rest of a site."""
    raise RuntimeError("No path of this benchmark is the site's.")


if __name__ == "__main__":
    main()
