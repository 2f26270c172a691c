from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from mcp_app.logs import LARGEST, LARGEST_EXCEPTION, JsonFormatter, WithoutSessionIds
from tests.drill.ports import HOST, free_port, has_listener
from tests.drill.programs import Program

PATIENCE_S: Final = 60
ADDRESS: Final = "/mcp/messages?a=1&session_id=s3cret&b=2"
HIDDEN: Final = "/mcp/messages?a=1&session_id=***&b=2"


class Atoms(dict[str, Any]):
    """Knows more than it holds, as gunicorn's and hypercorn's."""

    def __missing__(self, name: str) -> str:
        return "-"


@pytest.mark.parametrize(
    ("message", "args", "written"),
    [
        ('%s "%s" %d', ("127.0.0.1:1", ADDRESS, 202), f'127.0.0.1:1 "{HIDDEN}" 202'),
        ("%(path)s %(x)s", (Atoms(path=ADDRESS),), f"{HIDDEN} -"),
        ("%(q)s %(n)d", ({"q": "session_id=s3cret", "n": 1},), "session_id=*** 1"),
        (f"GET {ADDRESS} HTTP/1.1", (), f"GET {HIDDEN} HTTP/1.1"),
        ("%s", ("/other?my_session_id=a",), "/other?my_session_id=a"),
        ("%s", ("/mcp?access_token=mcp_a&b=2",), "/mcp?access_token=***&b=2"),
    ],
)
def test_what_is_written(message: str, args: Any, written: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, message, args, None)
    assert WithoutSessionIds().filter(record)
    assert record.getMessage() == written


def test_what_is_no_text_stays_as_it_is() -> None:
    error = ValueError("session_id=a")
    record = logging.LogRecord("x", logging.INFO, "", 0, error, (), None)
    assert WithoutSessionIds().filter(record)
    assert record.msg is error


SITE: Final = """
import logging, sys
from mcp_app.logs import WithoutSessionIds

async def site(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
"""
UVICORN: Final = """
import uvicorn

config = uvicorn.Config(site, host=sys.argv[1], port=int(sys.argv[2]), lifespan="off")
logging.getLogger("uvicorn.access").addFilter(WithoutSessionIds())
uvicorn.Server(config).run()
"""
DAPHNE: Final = """
import django
from django.conf import settings

ids = {"()": "mcp_app.logs.WithoutSessionIds"}
console = {"class": "logging.StreamHandler"}
server = {"handlers": ["console"], "filters": ["ids"], "level": "INFO"}
settings.configure(LOGGING={
    "version": 1,
    "filters": {"ids": ids},
    "handlers": {"console": console},
    "loggers": {"django.channels.server": server},
})
django.setup()

from daphne.management.commands.runserver import Command
from daphne.server import Server

endpoint = f"tcp:port={sys.argv[2]}:interface={sys.argv[1]}"
Server(site, endpoints=[endpoint], action_logger=Command().log_action).run()
"""


@pytest.mark.parametrize("program", [UVICORN, DAPHNE])
def test_a_server_that_logs_addresses(program: str) -> None:
    port = free_port()
    with Program([sys.executable, "-c", SITE + program, HOST, str(port)]) as server:
        server.wait_until(lambda: has_listener(port), PATIENCE_S)
        httpx.get(f"http://{HOST}:{port}{ADDRESS}", timeout=PATIENCE_S)
        server.stop()
    assert HIDDEN in server.output
    assert "s3cret" not in server.output


# -- json logs -------------------------------------------------------------------------


NASTY: Final = (
    "x\n2026-01-01 00:00:00 ERROR root login",
    "a\r\nb",
    "\x1b[2J\x1b]8;;http://evil.example\x07",
    "\u2028\u2029\x85",
    "\u202egnp.exe",
    "\x7f\x9b31m\0",
    '"}{"level": "CRITICAL"',
    "\ud83d",
    "\N{PARROT}" * 5_000,
    "x" * 10_000,
    "\n" * 10_000,
)


def written(message: str, *values: Any, extra: Mapping[str, Any] | None = None) -> str:
    record = logging.LogRecord("a.b", logging.INFO, "", 0, message, values, None)
    vars(record).update(extra or {})
    return JsonFormatter().format(record)


@pytest.mark.parametrize("text", NASTY)
def test_one_line_whatever_is_said(text: str) -> None:
    for line in (
        written(text),
        written("%s", text),
        written("said", extra={"reason": text}),
    ):
        assert line.isascii()
        assert line.isprintable()
        assert len(line.splitlines()) == 1
        found = json.loads(line)
        assert (found["level"], found["logger"]) == ("INFO", "a.b")
        told = found["reason"] if "reason" in found else found["message"]
        assert told == text or (told.endswith("...") and text.startswith(told[:-3]))
        assert len(json.dumps(told)) - 2 <= LARGEST


def test_a_name_of_a_field_is_no_longer_and_hides_none() -> None:
    found = json.loads(written("said", extra={"x" * 9_000: 1, "level": "CRITICAL"}))
    assert found["level"] == "INFO"
    assert max(map(len, found)) <= LARGEST


def test_values_of_all_kinds() -> None:
    values = {"a": 1, "b": 0.5, "c": None, "d": True, "e": [1], "f": 2**70}
    found = json.loads(written("said", extra=values))
    assert found | values | {"e": "[1]", "f": str(2**70)} == found


def test_the_end_of_an_exception() -> None:
    # As deep as a query that fails in Django, below a line of the site.
    for length, has_all in ((3_000, True), (10_000, False)):
        try:
            raise ValueError("x" * length + "\nthe end")
        except ValueError:
            record = logging.LogRecord("a", 40, "", 0, "failed", (), sys.exc_info())
        line = JsonFormatter().format(record)
        assert len(line.splitlines()) == 1
        told = json.loads(line)["exception"]
        assert told.endswith("the end")
        assert ("in test_the_end_of_an_exception" in told) is has_all
        assert len(json.dumps(told)) - 2 <= LARGEST_EXCEPTION
