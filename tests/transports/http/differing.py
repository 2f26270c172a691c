"""Requests that go two ways and must come out as one: as plain calls, and as others.

`Both` sends each request to one process, once with the plain way on and once with it
off, and compares everything that is seen of it: status, headers, body, what the call
log takes, what is counted of refusals and uses.
"""

from __future__ import annotations
import __future__

import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pytest

from mcp_app.auth.token_cache import token_cache
from mcp_app.process.runtime import Process
from mcp_app.transports.http.plain_call import PlainCall
from mcp_app.transports.http.plain_headers import known_headers
from tests.asgi_client import Visit
from tests.wire.middleware import WireCheck

VERSION: Final = "2026-07-28"
PREFIX: Final = "io.modelcontextprotocol/"
META: Final[Mapping[str, Any]] = {
    f"{PREFIX}protocolVersion": VERSION,
    f"{PREFIX}clientInfo": {"name": "either", "version": "1"},
    f"{PREFIX}clientCapabilities": {},
}
HEADERS: Final[tuple[tuple[str, str], ...]] = (
    ("host", "localhost"),
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", VERSION),
    ("mcp-method", "tools/call"),
    ("mcp-name", "drill_add"),
)
ADD: Final = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
# Random, and different each time: the id of a failure, sealed state, a time to wait.
_RANDOM: Final = re.compile(
    rb'(?<=in the log is )[0-9a-f]{8}|(?<="requestState":")[^"]+|(?<=^id: )\S+',
    re.MULTILINE,
)
# Each request of a session has an id of its own, of the same length.
_OWN_ID: Final = re.compile(rb'(?<="id":)1\d{6}\b|(?<=with the id )1\d{6}\b')
_own_ids = itertools.count(1_000_000)


@dataclass(frozen=True)
class Request:
    """A POST: its headers in their order, and the pieces of its body."""

    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = HEADERS
    path: str = "/mcp"
    pieces: int = 1
    note: str = field(default="", compare=False)

    def parts(self) -> Sequence[bytes]:
        """Return the body in as many pieces."""
        size = max(1, -(-len(self.body) // self.pieces))
        starts = range(0, max(1, len(self.body)), size)
        return [self.body[start : start + size] for start in starts]


Step = Request | Callable[[], Awaitable[Any]]
"""A request, or something that changes what is served."""


def changed(**changes: str | Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the usual headers with changes: None takes one away, a list repeats it."""
    named: dict[str, Any] = {**dict(HEADERS), **_named(changes)}
    return tuple(
        (name, each)
        for name, value in named.items()
        for each in ([value] if isinstance(value, str) else value or ())
    )


def _named(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in changes.items()}


def message(
    params: Mapping[str, Any] = ADD, meta: Any = META, **members: Any
) -> dict[str, Any]:
    """Return a call as a dictionary."""
    whole = {**params, "_meta": meta}
    return {
        **{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": whole},
        **members,
    }


def encoded(value: Any) -> bytes:
    """Return the JSON of a message, as most clients write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def call(
    name: str, /, header: str | None = None, path: str = "/mcp", **arguments: Any
) -> Request:
    """Return a call of a tool."""
    headers = changed(mcp_name=name if header is None else header)
    params = {"name": name, "arguments": arguments}
    return Request(encoded(message(params)), headers, path)


def in_session(request: Request, session: str, version: str) -> Request:
    """Return a request as a client of that session sends it."""
    headers = [
        (name, version if (name, value) == ("mcp-protocol-version", VERSION) else value)
        for name, value in request.headers
        if name not in {"mcp-method", "mcp-name"}
    ]
    body = request.body.replace(b',"_meta":' + encoded(META), b"")
    named = (*headers, ("mcp-session-id", session))
    return replace(request, body=body, headers=named)


class Seen(NamedTuple):
    """What is seen of one request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    record: tuple[Any, ...]
    refused: tuple[Any, ...]
    used: frozenset[int]
    running: int


class Both:
    """Sends requests both ways."""

    def __init__(
        self, application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._application = application
        self._process = process
        self._patched = monkeypatch
        self.plain = 0
        """How many were plain calls."""

    async def differences(
        self, steps: Sequence[Request | Callable[[], Any]]
    ) -> list[str]:
        """Return where the ways differ; a step that is called changes something."""
        with self._counting():
            ours = [await self._step(each) for each in steps]
        with self._patched.context() as off:
            self.turn_off(off)
            theirs = [await self._step(each) for each in steps]
        return [
            f"{step}:\n  {one}\n  {other}"
            for step, one, other in zip(steps, ours, theirs, strict=True)
            if one != other
        ]

    def turn_off(self, off: pytest.MonkeyPatch) -> None:
        """Let no call be a plain one."""
        off.setattr(PlainCall, "is_admitted", lambda *_: False)

    def visit(self, request: Request) -> Any:
        """Return a visit: it has `body()`, and then `status` and `headers`."""
        return Visit(
            self._application, "POST", request.path, request.headers, request.parts()
        )

    async def differ(self, *parts: Sequence[Request | Callable[[], Any]]) -> bool:
        """Return whether the ways differ in one part; those after it are not sent."""
        for part in parts:
            try:
                if await self.differences(part):
                    return True
            except AssertionError:
                # A way that gives no answer differs, too.
                return True
        return False

    @contextmanager
    def _counting(self) -> Iterator[None]:
        record = PlainCall._record

        def counted(*given: Any) -> Any:
            self.plain += 1
            return record(*given)

        with self._patched.context() as patched:
            patched.setattr(PlainCall, "_record", counted)
            yield

    async def _step(self, step: Step) -> Seen | None:
        if not isinstance(step, Request):
            await step()
            return None
        return await self.seen(step)

    async def seen(self, request: Request) -> Seen:
        """Send a request; return what is seen of it."""
        audit = self._process.audit
        assert audit is not None
        token_cache._used.clear()
        self._process.turned_away._counts.clear()
        records: list[Any] = []
        if "mcp-session-id" in dict(request.headers):
            own = request.body.replace(b'"id":7,', b'"id":%d,' % next(_own_ids))
            request = replace(request, body=own)
        visit = self.visit(request)
        with self._patched.context() as listening:
            listening.setattr(audit, "add", records.append)
            listening.setattr(audit, "add_in_vain", records.append)
            body = await visit.body()
        return Seen(
            visit.status,
            tuple(sorted((visit.headers | {"retry-after": ""}).items())),
            _OWN_ID.sub(b"7", _RANDOM.sub(b"-", body)),
            # Without the times, and without the id of a failure.
            tuple((each[0], *each[3:7], *_text(each[7].error)) for each in records),
            tuple(group[1:] for group in self._process.turned_away.counts_of_day()),
            frozenset(token_cache._used),
            len(self._process.running),
        )


def _text(error: str) -> tuple[str, ...]:
    return (_RANDOM.sub(b"-", error.encode()).decode(),)


@contextmanager
def planted(owner: Any, name: str, text: str, instead: str) -> Iterator[None]:
    """Change the source of a function: it runs without a check that it has."""
    function = inspect.unwrap(vars(owner)[name])
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(text) == 1, f"{name} has no {text!r}"
    module = inspect.getmodule(function)
    scope: dict[str, Any] = dict(vars(module))
    flags = __future__.annotations.compiler_flag
    code = compile(source.replace(text, instead), "planted", "exec", flags)
    exec(code, scope)  # noqa: S102 - the product's own source
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, scope[name])
        known_headers._headers.clear()
        yield
    known_headers._headers.clear()
