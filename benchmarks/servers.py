"""The three servers of the benchmarks: this project's, the floor, the SDK's."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.load import Answer
from benchmarks.processes import Process, free_port, serving

SIGN_IN = {"MCP_PUBLIC_URL": "http://localhost", "MCP_HOSTS": "127.0.0.1"}
"""With a public address the site lets programs sign in."""

RATES = {
    **{"tool_rate": 10**8, "tool_burst": 10**7},
    **{"request_rate": 10**8, "request_burst": 10**7},
}
"""A benchmark calls more often than a person: all is counted, nothing refused."""

_MADE_BY_THE_SERVER = {"connection", "content-length", "date", "server"}


def drill(
    server: str = "uvicorn",
    *,
    tools: int = 0,
    database: str = "",
    janitor: int = 0,
    audit: str = "batched",
    workers: int = 1,
    sign_in: bool = False,
    rates: bool = False,
) -> AbstractContextManager[Process]:
    """Serve the fixture set, with that many plain tools after its own.

    With `janitor` it comes each so many seconds, and removes what was over for as long.
    Several workers are served by `uvicorn-worker` only.  Programs can sign in if
    `sign_in` is true, and people have rates if `rates` is.
    """
    port = free_port()
    environment = {"PORT": str(port), "SERVER": server, "NTOOLS": str(tools)}
    environment |= {"JANITOR": str(janitor), "MCP_AUDIT": audit}
    # gunicorn's own name for it.
    environment["WEB_CONCURRENCY"] = str(workers)
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
    answer: Answer,
    server: str = "uvicorn",
    under: Sequence[str] = (),
    loops: int = 0,
) -> Iterator[Process]:
    """Serve the floor: that answer, whatever the request, after an empty loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answer.json")
        path.write_text(replay(answer))
        environment = {"FLOOR_ANSWER": str(path), "FLOOR_LOOPS": str(loops)}
        with application("benchmarks.floors", server, environment, under) as process:
            yield process


@contextmanager
def django_floor(answer: Answer) -> Iterator[Process]:
    """Serve an empty view of Django's by gunicorn, with that answer to any request."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answer.json")
        path.write_text(replay(answer))
        with _wsgi_peer({"PEER": "floor", "FLOOR_ANSWER": str(path)}) as process:
            yield process


def mcpz(server: str = "gunicorn") -> AbstractContextManager[Process]:
    """Serve the benchmark's tool with django-mcpz, by gunicorn or granian."""
    return _wsgi_peer({"PEER": "mcpz"}, server)


def _wsgi_peer(
    environment: Mapping[str, str], server: str = "gunicorn"
) -> AbstractContextManager[Process]:
    # As the fixture set is served by it.
    return application(
        "benchmarks.wsgi_peers",
        server,
        {"DATABASE_URL": "sqlite://:memory:", **environment},
    )


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


def replay(answer: Answer) -> str:
    """Return what the file that `FLOOR_ANSWER` names has to hold."""
    headers = [
        (name, value)
        for name, value in answer.headers
        if name not in _MADE_BY_THE_SERVER
    ]
    return json.dumps(
        {
            "before": answer.before.decode(),
            "after": answer.after.decode(),
            "headers": headers,
        }
    )
