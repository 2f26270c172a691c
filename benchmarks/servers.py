"""The servers of the benchmarks: this project's, the floors, the peers."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from benchmarks.load import Answer
from benchmarks.processes import Process, serving
from tests.drill.ports import free_port

SIGN_IN = {"MCP_PUBLIC_URL": "http://localhost", "MCP_HOSTS": "127.0.0.1"}
"""With a public address the site lets programs sign in."""

RATES = {
    **dict.fromkeys(("tool_rate", "request_rate"), 10**8),
    **dict.fromkeys(("tool_burst", "request_burst"), 10**7),
}
"""A benchmark calls more often than a person: all is counted, nothing refused."""

_MADE_BY_THE_SERVER = {"connection", "content-length", "date", "server"}


def drill(
    server: str = "uvicorn",
    *,
    tools: int = 0,
    database: str = "",
    audit: str = "batched",
    sign_in: bool = False,
    rates: bool = False,
) -> AbstractContextManager[Process]:
    """Serve the fixture set, with that many plain tools after its own.

    Programs can sign in if `sign_in` is true, and people have rates if `rates` is.
    """
    port = free_port()
    environment = {"PORT": str(port), "SERVER": server, "NTOOLS": str(tools)}
    environment["MCP_AUDIT"] = audit
    if database:
        environment["DATABASE_URL"] = database
    if sign_in:
        environment |= SIGN_IN
    if rates:
        environment["MCP_LIMITS"] = json.dumps(RATES)
    command = [sys.executable, "-m", "tests.drill.serve"]
    return serving(command, port, environment)


@contextmanager
def floor(
    answer: Answer, server: str = "uvicorn", under: Sequence[str] = (), loops: int = 0
) -> Iterator[Process]:
    """Serve the floor: that answer, whatever the request, after an empty loop."""
    with keep_answer(answer) as environment:
        environment["FLOOR_LOOPS"] = str(loops)
        with application("benchmarks.floors", server, environment, under) as process:
            yield process


@contextmanager
def django_floor(answer: Answer) -> Iterator[Process]:
    """Serve an empty view of Django's by gunicorn, with that answer to any request."""
    with (
        keep_answer(answer) as environment,
        _wsgi_peer("floor", environment) as process,
    ):
        yield process


@contextmanager
def keep_answer(answer: Answer) -> Iterator[dict[str, str]]:
    """Write the answer into a file, and return the environment that names it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        headers = [
            each for each in answer.headers if each[0] not in _MADE_BY_THE_SERVER
        ]
        text = {"before": answer.before.decode(), "after": answer.after.decode()}
        json.dump({**text, "headers": headers}, file)
        file.flush()
        yield {"FLOOR_ANSWER": file.name}


def mcpz(server: str = "gunicorn") -> AbstractContextManager[Process]:
    """Serve the benchmark's tool with django-mcpz, by gunicorn or granian."""
    return _wsgi_peer("mcpz", {}, server)


def looking_up(peer: str, database: str) -> AbstractContextManager[Process]:
    """Serve a tool that asks a prepared database for a row, by gunicorn."""
    return _wsgi_peer(peer, {"DATABASE_URL": database})


def _wsgi_peer(
    peer: str, environment: Mapping[str, str], server: str = "gunicorn"
) -> AbstractContextManager[Process]:
    # As the fixture set is served by it.
    own = {"DATABASE_URL": "sqlite://:memory:", "PEER": peer}
    return application("benchmarks.wsgi_peers", server, {**own, **environment})


def sdk() -> AbstractContextManager[Process]:
    """Serve the benchmark's tool with the official Python SDK."""
    return application("benchmarks.sdk_peer", "uvicorn", {})


def application(
    module: str, server: str, environment: Mapping[str, str], under: Sequence[str] = ()
) -> AbstractContextManager[Process]:
    """Serve the `application` of a module in one process, `under` another program."""
    port = free_port()
    command = [*under, sys.executable, "-m", *_commands(port)[server]]
    return serving([*command, f"{module}:application"], port, environment)


def _commands(port: int) -> dict[str, list[str]]:
    """Return how each ASGI server is run: one process, its fastest parts, silent."""
    address = ["--host", "127.0.0.1", "--port", str(port)]
    silent = ["--log-level", "warning", "--no-access-log"]
    fastest = ["--loop", "uvloop", "--http", "httptools"]
    return {
        "uvicorn": ["uvicorn", *address, *silent, *fastest],
        "daphne": ["daphne", "--bind", "127.0.0.1", "-p", str(port), "-v", "0"],
        "granian": [
            *("granian", *address, "--interface", "wsgi", "--workers", "1"),
            *("--no-access-log", "--log-level", "warning"),
        ],
        "gunicorn": [
            *("gunicorn", "--bind", f"127.0.0.1:{port}", "--log-level", "error"),
            *("--worker-class", "gthread", "--workers", "2", "--threads", "8"),
        ],
    }
