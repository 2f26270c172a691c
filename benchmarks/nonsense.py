"""How long large bodies hold the loop: `python -m benchmarks.nonsense`.

The endpoint runs in this process, without sockets, and a watchdog beside it on the same
loop: what it is late by, the loop was held.  Bodies of 4 MiB in many shapes, the
documents of JSONTestSuite, and messages that are nearly those of the official schemas.

It prints one line of JSON for each: what it was, how long the loop was held at most and
how long the answer took, in milliseconds, and what is wrong with the answers.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from benchmarks.large_bodies import FITS, NO_JSON, Shape, shapes
from benchmarks.messages import FIRST_ID, Request, call, initialize, stateful

ROUNDS: Final = 5
MOST_ROUNDS: Final = 25
"""Other programs only add to what the loop was held: the least of the rounds counts.
There are more of them while it is more than it may be."""
MOST_MS: Final = 50.0
LOOK_S: Final = 0.001
MESSAGES: Final = 2_000
PIECE: Final = 64 * 1024
PORT: Final = 8000

Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


# -- the site, and the watchdog -------------------------------------------------------


class Watchdog:
    """Comes each millisecond; what it is late by at most, the loop was held."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.held = 0.0
        self._due = 0.0
        self._come()

    def _come(self) -> None:
        now = self._loop.time()
        if self._due:
            self.held = max(self.held, now - self._due)
        self._due = now + LOOK_S
        self._timer = self._loop.call_at(self._due, self._come)

    def stop(self) -> float:
        """Return for how many seconds the loop was held at most."""
        self._timer.cancel()
        return max(self.held, self._loop.time() - self._due)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came, and how long it took (seconds)."""

    status: int
    body: bytes
    took: float
    held: float


async def _ask(application: Asgi, request: Request, body: bytes) -> Answer:
    """Send a body in pieces, and read its answer."""
    pieces = [body[at : at + PIECE] for at in range(0, len(body) or 1, PIECE)][::-1]
    lines = [*request.lines(PORT), ("Content-Length", str(len(body)))]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in lines],
        "extensions": {},
    }
    parts: list[bytes] = []
    status = [0]

    async def receive() -> dict[str, Any]:
        # As from a socket: others have their turn between two pieces.
        await asyncio.sleep(0)
        if not pieces:
            await asyncio.get_running_loop().create_future()
        piece = pieces.pop()
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            status[0] = event["status"]
        else:
            parts.append(event.get("body", b""))

    watchdog = Watchdog()
    began = time.perf_counter()
    await application(scope, receive, send)
    took = time.perf_counter() - began
    # What was begun beside the answer is seen, too.
    await asyncio.sleep(2 * LOOK_S)
    return Answer(status[0], b"".join(parts), took, watchdog.stop())


def _wrong(answer: Answer, outcome: str) -> str:
    """Return what is wrong with an answer, "" if nothing is."""
    text = answer.body.partition(b"data: ")[2] or answer.body
    message = json.loads(text.split(b"\n")[0])
    if outcome == NO_JSON:
        right = (answer.status, message["error"]["code"]) == (400, -32700)
    else:
        fits = outcome == FITS
        right = message.get("result", {}).get("isError", False) is not fits
    return "" if right else f"HTTP {answer.status}: {answer.body[:300]!r}"


class _Site:
    """The application, and a session of it."""

    def __init__(self) -> None:
        from mcp_app.asgi import application  # noqa: PLC0415 - after Django's setup

        self.application: Asgi = application(_nobody)
        self._session = ""

    async def open(self) -> None:
        """Open a session, for calls that run once."""
        from mcp_app.process.current import process  # noqa: PLC0415

        opened: dict[bytes, bytes] = {}

        async def send(event: dict[str, Any]) -> None:
            opened.update(event.get("headers", ()))

        request = initialize({})
        await _ask(_noting(self.application, send), request, request.body())
        self._session = opened[b"mcp-session-id"].decode()
        ready = stateful(self._session, "notifications/initialized", {})
        told = json.dumps({"jsonrpc": "2.0", **ready.message}).encode()
        await _ask(self.application, ready, told)
        await process().gate.look()

    async def measured(self, shape: Shape) -> tuple[float, float, str]:
        """Return the milliseconds that a shape holds the loop and takes, and faults."""
        session = self._session if shape.session else None
        request = call(shape.tool, {"value": "VALUE"}, session=session)
        answers = []
        for number in range(MOST_ROUNDS):
            body = request.body(FIRST_ID + number).replace(b'"VALUE"', shape.value)
            gc.collect()
            answers.append(await _ask(self.application, request, body))
            least = min(each.held for each in answers) * 1_000
            if number + 1 >= ROUNDS and least <= MOST_MS:
                break
        return (
            min(each.held for each in answers) * 1_000,
            max(each.took for each in answers) * 1_000,
            next(filter(None, (_wrong(each, shape.outcome) for each in answers)), ""),
        )

    async def measured_bodies(
        self, bodies: Sequence[tuple[Request, bytes]]
    ) -> tuple[float, float, str]:
        """Return the same for many small bodies, of which the longest counts."""
        held = took = 0.0
        for request, body in bodies:
            answers = [await _ask(self.application, request, body)]
            while len(answers) < ROUNDS and answers[-1].held > 5 * LOOK_S:
                answers.append(await _ask(self.application, request, body))
            held = max(held, min(each.held for each in answers))
            took = max(took, *(each.took for each in answers))
            if answers[-1].status >= 500:
                return held * 1_000, took * 1_000, f"{body!r}: {answers[-1].body!r}"
        return held * 1_000, took * 1_000, ""


def _noting(application: Asgi, note: Callable[[Any], Awaitable[None]]) -> Asgi:
    async def noted(scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def both(event: dict[str, Any]) -> None:
            await note(event)
            await send(event)

        await application(scope, receive, both)

    return noted


async def _nobody(*_: object) -> None:
    raise RuntimeError("No path of this benchmark is the site's.")


# -- the process -----------------------------------------------------------------------


async def _measure() -> None:
    from mcp_app.process.current import process  # noqa: PLC0415 - after Django's setup

    site = _Site()
    await site.open()
    for name, shape in shapes():
        _print(name, *(await site.measured(shape)))
    documents, messages = _documents(), _messages(random.randrange(10**6))
    _print("documents of JSONTestSuite", *(await site.measured_bodies(documents)))
    _print("nearly right messages", *(await site.measured_bodies(messages)))
    process().close()


def _documents() -> list[tuple[Request, bytes]]:
    from tests.attacks.json_documents import all_documents  # noqa: PLC0415

    request = stateful("", "ping", {})
    headers = {k: v for k, v in request.headers.items() if k != "Mcp-Session-Id"}
    bare = Request(headers=headers, message={})
    return [(bare, document) for document in all_documents().values()]


def _messages(seed: int) -> list[tuple[Request, bytes]]:
    """Return stateless messages that are nearly right; the seed is printed."""
    from tests.asgi_client import routing_headers  # noqa: PLC0415
    from tests.attacks.mutations import STATELESS, Mutations  # noqa: PLC0415

    print(f"The seed of the messages is {seed}.", file=sys.stderr)
    mutations = Mutations(STATELESS, random.Random(seed))
    request = call("drill_add")
    kept = ("Content-Type", "Accept", "MCP-Protocol-Version")
    headers = {name: request.headers[name] for name in kept}
    return [
        (Request(headers={**headers, **routing_headers(message)}, message={}), body)
        for body, message in (mutations.next() for _ in range(MESSAGES))
        # A stream would not end.
        if b"listen" not in body
    ]


def _print(name: str, held: float, took: float, wrong: str) -> None:
    print(json.dumps([name, held, took, wrong]), flush=True)


def main() -> None:
    """Prepare the database that the environment names, and measure."""
    import django  # noqa: PLC0415 - its settings are chosen by the environment

    django.setup()
    from tests.drill.preparing import prepare  # noqa: PLC0415

    import_module("benchmarks.wide_tools")
    prepare()
    asyncio.run(_measure())


if __name__ == "__main__":
    if "DATABASE_URL" not in os.environ:
        sys.exit("DATABASE_URL must name a database of its own.")
    main()
