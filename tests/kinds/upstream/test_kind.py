"""Tools of other MCP servers, as our clients call them: of real and of hostile ones."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import pytest
from mcp import Client
from pytest_django import DjangoDbBlocker, Settings

from mcp_app.egress.client import close_connections
from mcp_app.interface.call_record import Outcome
from mcp_app.kinds.upstream import calls
from mcp_app.models import Tool
from mcp_app.process.runtime import Process
from tests.audit.reading import kept
from tests.clients.node import MODULES, NODE
from tests.drill.contents import text
from tests.drill.ports import free_port, has_listener
from tests.drill.programs import Program
from tests.drill.running import running
from tests.egress.conftest import peer
from tests.egress.peer import LOOPBACK, Peer, Received, answer
from tests.published import published
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

__all__ = ["peer"]

REGION: Final = {"type": "string", "x-mcp-header": "Region"}
MIRROR: Final = json.dumps({"type": "object", "properties": {"region": REGION}})
PLAIN: Final = "blocks steps count test_resource_link test_error_handling"
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    **{"add": {"a": 1}, "route": {"region": "=?Zürich"}},
    **{"test_x_mcp_header": {"region": "us"}, "test_tool_with_progress": {}},
    **{name: {} for name in PLAIN.split()},
}


@pytest.fixture
def tools(process: Process, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        made = []
        for name, arguments in ARGUMENTS.items():
            config = json.dumps({"site": "there", "tool": name})
            shared = {"kind": "upstream", "tags": "private shown", "config": config}
            shared["input_schema"] = MIRROR if "region" in arguments else ""
            made.append(published(Tool(name=f"there_{name}", **shared)))
        yield
        for each in made:
            each.delete()


@pytest.fixture
async def call(tools: None, connect: Connect) -> AsyncIterator[Any]:
    """Call a tool as a user, "" for nobody."""

    async def call(name: str, /, user: str = "1", **arguments: Any) -> Any:
        server, headers = ("private", {"x-user": user}) if user else ("tagged", {})
        # An older client need not repeat parameters in headers.
        client = await connect(STATEFUL, path=f"/mcp/{server}", headers=headers)
        params = {"name": f"there_{name}", "arguments": arguments, "_meta": TOKEN}
        return await client.request("tools/call", params)

    yield call
    await close_connections()


TOKEN: Final = {"progressToken": "here"}
URL: Final = "http://127.0.0.1:{}/mcp"


def site(port: int, **options: Any) -> dict[str, Any]:
    shared = {"title": "Peer", "mcp": True, "networks": LOOPBACK, "timeout": 60}
    return {"there": {**shared, "url": URL.format(port), **options}}


# -- servers of others -----------------------------------------------------------------


def start(**ports: int) -> Program:
    pairs = [f"{sort}={port}" for sort, port in ports.items()]
    command = [sys.executable, "-m", "tests.kinds.upstream.servers", *pairs]
    if "v1" in ports:
        if not MODULES.is_dir():
            pytest.skip("node_modules is missing: `make node` installs it.")
        script = Path(__file__).with_name("server_v1.mjs")
        command = [str(NODE), str(script), str(ports["v1"])]
    program = Program(command)
    program.wait_until(lambda: all(map(has_listener, ports.values())), 120)
    return program


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    python = {sort: free_port() for sort in ("sdk", "sdk_json", "fastmcp")}
    v1 = {"v1": free_port()}
    with running("uvicorn") as ours, start(**python), start(**v1):
        yield {"ours": urlsplit(ours).port or 0, **python, **v1}


OFFERS: Final = {
    **dict.fromkeys(("sdk", "fastmcp"), "add blocks route steps"),
    **{"sdk_json": "add blocks route", "v1": "add"},
    "ours": " ".join(each for each in ARGUMENTS if each.startswith("test_")),
}


@pytest.mark.programs
@pytest.mark.parametrize("sort", OFFERS)
async def test_answers_are_those_of_a_direct_call(
    call: Any, settings: Settings, ports: dict[str, int], sort: str
) -> None:
    settings.MCP = {**settings.MCP, "HTTP": site(ports[sort])}
    async with Client(URL.format(ports[sort])) as client:
        # It repeats parameters in headers for tools that it has seen.
        await client.list_tools()
        for name in OFFERS[sort].split():
            direct = await client.call_tool(name, ARGUMENTS[name])
            expected = direct.model_dump(by_alias=True, exclude_none=True, mode="json")
            outcome = await call(name, **ARGUMENTS[name])
            for member in ("content", "structuredContent"):
                assert outcome.result.get(member) == expected.get(member), name
            assert outcome.result.get("isError", False) == expected["isError"], name
            steps = outcome.notifications("notifications/progress")
            assert len(steps) == (3 if name.startswith(("steps", "test_tool")) else 0)


@pytest.mark.programs
async def test_sessions(
    call: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says how often it was called in this session, of how many."""
    monkeypatch.setattr(calls, "MAX_SESSIONS", 2)
    port = free_port()
    settings.MCP = {**settings.MCP, "HTTP": site(port)}

    async def counts(*users: str) -> str:
        return " ".join([(await call("count", user=each)).text for each in users])

    with start(v1=port):
        assert await counts("1", "2", "1", "2") == "1/1 1/2 2/2 2/2"
        # A stranger's session ends with the call.
        assert await counts("", "", "1") == "1/3 1/3 3/2"
        # Who called last longest ago has a new one.
        assert await counts("3", "1", "2") == "1/3 4/3 1/4"
    assert "Peer cannot be reached right now." in await counts("2")
    with start(v1=port):
        assert await counts("2", "2", "1") == "1/1 2/1 1/2"


# -- hostile servers -------------------------------------------------------------------

SECRET: Final = "canary-in-a-header"
POSSIBLY: Final = " It may have happened all the same."
LATE: Final = f"Peer took longer than 0.5 s.{POSSIBLY}"
EVENTS: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
OTHER, SHAPE, ANSWERED = Outcome.OTHER_SITE, Outcome.SHAPE, Outcome.ANSWERED
TOOL, LARGE = Outcome.TOOL_ERROR, Outcome.TOO_LARGE
HOLD: Final = "and no end"
Write: TypeAlias = Callable[[int], bytes]
"""Takes the id of a request, and returns what is sent for it."""


def reply(status: int = 200, **members: Any) -> Write:
    return lambda i: answer({"jsonrpc": "2.0", "id": i, **members}, status)


def refusal(status: int, **headers: str) -> Write:
    return lambda _: answer(SECRET, status, **headers)


def stream(*events: Any, more: bytes = b"") -> Write:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in events]
    body = "".join(f"data: {each}\n\n" for each in texts)
    return lambda i: EVENTS + more + b"\r\n" + body.replace('"ID"', str(i)).encode()


def progress(**params: Any) -> dict[str, Any]:
    params = {"progressToken": "ID", "progress": 1, **params}
    return {"method": "notifications/progress", "params": params}


NO_KEY: Final = "Peer did not accept this site's key. Do not retry; tell the user."
MOVED: Final = "Peer answered 307. Write the address in the settings as it redirects:"
ASKS: Final = (
    "Peer asks for something that this site does not pass on: a question, or a task."
)
UNREADABLE: Final = f"The answer of Peer cannot be read.{POSSIBLY}"
TOO_LARGE: Final = f"The answer is larger than 0.0625 MiB.{POSSIBLY}"
STRANGE: Final = [{"type": "video"}, {**text("a"), "annotations": {"priority": 7}}]
REFUSED: Final = "[Content of type '{}' is not allowed by the protocol.]"
SHOWN: Final = f"{REFUSED.format('video')} {REFUSED.format('text')} b"
DONE: Final = {"id": "ID", "result": {"content": [text("Done.")]}}
QUESTIONS: Final = ({"id": 1, "method": "elicitation/create"}, {**DONE, "method": 1})
BROKEN: Final = ("{", "[1]", "5", '{"id": 1, "id": 2}', SECRET, {**DONE, "id": -1})
NUMBERS: Final[Sequence[Any]] = (True, "2", None, [], 0, 10**400)
STEPS: Final = [progress(message=f"At {SECRET}."), progress(progress=3, message=5)]
STEPS.extend(progress(progress=each) for each in NUMBERS)
DEEP: Final = json.loads("[" * 70 + "]" * 70)
BOMB: Final = gzip.compress(b"data: " + b"a" * 2**24)
CASES: Final[list[tuple[Outcome, str, Write]]] = [
    (OTHER, NO_KEY, refusal(401)),
    (OTHER, NO_KEY, refusal(403)),
    (OTHER, NO_KEY, reply(401, error={"code": 1, "message": "Unauthorized"})),
    (OTHER, "Peer refused the request (400).", refusal(400)),
    (OTHER, f"{MOVED} http://•••", refusal(307, Location=f"http://{SECRET}")),
    (OTHER, "Peer refused the request (404).", refusal(404)),
    (OTHER, f"Peer failed (500).{POSSIBLY}", refusal(500)),
    (OTHER, "Peer: a •••", reply(400, error={"code": 1, "message": f"a {SECRET}"})),
    (OTHER, "Peer: an error.", reply(error=[])),
    (TOOL, "Peer: No.", reply(error={"code": -32602, "message": "No."})),
    (TOOL, "a •••", reply(result={"content": [text(f"a {SECRET}")], "isError": True})),
    (OTHER, ASKS, reply(result={"resultType": "input_required"})),
    (OTHER, ASKS, reply(result={"task": {"taskId": "1"}})),
    (SHAPE, UNREADABLE, reply(result={"content": {"0": "a"}})),
    (SHAPE, UNREADABLE, reply(result={"structuredContent": {"a": DEEP}})),
    (SHAPE, UNREADABLE, reply(result=[1])),
    (SHAPE, UNREADABLE, refusal(200)),
    (OTHER, f"Peer ended before it answered.{POSSIBLY}", stream(BROKEN[-1])),
    (LARGE, TOO_LARGE, stream("a" * 2**24)),
    (LARGE, TOO_LARGE, lambda _: EVENTS + b"Content-Encoding: gzip\r\n\r\n" + BOMB),
    (OTHER, LATE, lambda _: b""),
    (OTHER, LATE, stream(HOLD)),
    (ANSWERED, "Done.", stream(*BROKEN, *QUESTIONS, DONE)),
    (ANSWERED, "Done.", stream(*STEPS, DONE, HOLD)),
    (ANSWERED, "Done.", stream(DONE, more=b"Content-Length: 999\r\n")),
    (ANSWERED, SHOWN, reply(result={"content": [*STRANGE, text("b")]})),
]


@pytest.fixture
def mcp(peer: Peer, request: pytest.FixtureRequest) -> dict[str, Any]:
    options = {"timeout": getattr(request, "param", 60), "answer": 65_536}
    return {"HTTP": site(peer.port, secret_headers={"X-Partner": SECRET}, **options)}


@pytest.mark.parametrize(
    ("refused", "runs"),
    [
        (answer("No.", 400), 1),
        # So servers answer for a session that they do not know.
        (answer({"id": None, "error": {"code": -32000}}, 400), 2),
        (answer("", 404), 2),
    ],
)
async def test_what_is_sent_again(
    call: Any, peer: Peer, mcp: dict[str, Any], refused: bytes, runs: int
) -> None:
    """In a session that is what has not run, as far as the server says."""

    async def send(request: Received, writer: asyncio.StreamWriter) -> None:
        method = request.json["method"] if request.body else ""
        if method in ("tools/call", "server/discover"):
            writer.write(refused if method == "tools/call" else answer("<p>"))
            return
        result = {"protocolVersion": STATEFUL, "serverInfo": {}}
        message = {"id": request.json.get("id"), "result": result}
        writer.write(answer(message, Mcp_Session_Id="a"))

    peer.send = send
    assert "Peer " in (await call("add")).text
    calls = [each for each in peer.received if b"tools/call" in each.body]
    assert len(calls) == runs


@pytest.mark.parametrize("mcp", [60, 0.5], indirect=True)
async def test_what_a_server_may_send(
    call: Any,
    peer: Peer,
    mcp: dict[str, Any],
    process: Process,
    caplog: pytest.LogCaptureFixture,
) -> None:
    over, raw = asyncio.Event(), b""
    is_brief = mcp["HTTP"]["there"]["timeout"] < 1
    for outcome, said, write in CASES:
        if (said == LATE) != is_brief:
            continue

        async def send(
            request: Received, writer: asyncio.StreamWriter, write: Write = write
        ) -> None:
            if request.json["method"] == "server/discover":
                write = reply(result={"supportedVersions": [STATELESS]})
            writer.write(sent := write(request.json["id"]))
            while not over.is_set() and (not sent or HOLD.encode() in sent):
                writer.write(b":" if sent else b"")
                await asyncio.sleep(0.01)
            if EVENTS in sent:
                writer.close()

        peer.send = send
        ended = await call("add")
        assert " ".join(each["text"] for each in ended.result["content"]) == said
        assert (await kept(process))[-1].outcome == outcome, said
        raw += ended.raw
    over.set()
    rows = json.dumps([vars(each) for each in await kept(process)], default=str)
    assert SECRET not in caplog.text + rows + raw.decode()
    assert is_brief or "At •••." in raw.decode()
