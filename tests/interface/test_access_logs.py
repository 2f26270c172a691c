"""Access logs of servers, as they make their records, have no ids of sessions."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

import httpx
import pytest

from mcp_app.interface.logs import WithoutSessionIds
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
from mcp_app.interface.logs import WithoutSessionIds

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

ids = {"()": "mcp_app.interface.logs.WithoutSessionIds"}
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
