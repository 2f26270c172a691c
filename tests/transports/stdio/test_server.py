"""`manage.py mcp_stdio` as a process: its streams, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.drill.piped import COMMAND, PATIENCE_S, Piped, database, environment, piped
from tests.drill.running import ROOT
from tests.marks import long_cases
from tests.tasks.conftest import TAKES_TASKS
from tests.transports.stdio.test_connection import (
    META,
    called,
    notification,
    request,
    stateless,
    subscription,
    text,
)
from tests.wire.validation import wire_validator

WAYS: Final = ("print", "descriptor", "c", "child", "logging")
"""Those of `tests.drill.functions.noise`, which declares tools where it is imported."""
LINES: Final = 1_024
"""A mebibyte."""
HELLO: Final = request(
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
    "hello",
)
READY: Final = notification("notifications/initialized")
ADD: Final = called("drill_add", "add", a=20, b=22)


def test_nothing_but_messages_is_written(tmp_path: Path) -> None:
    """A mebibyte in each way in which user code may write to standard output."""
    with piped(tmp_path, NOISE="yes") as server:
        server.send(HELLO, READY)
        for way in WAYS:
            server.send(called("noise_print", way, way=way, lines=LINES))
            assert text(server.answer(way)) == "0", "There is nothing to be read."
        server.send(called("noise_print_on_loop", 1, lines=LINES))
        assert text(server.answer(1)) == "printed"
        server.send(ADD)
        server.close_input()
        assert text(server.answer("add")) == "42"
        assert server.rest() == []
        assert server.wait() == 0
        assert server.output.count("x" * 1_023) == (len(WAYS) + 1) * LINES
        assert "jsonrpc" not in server.output


def test_what_the_site_logs_is_on_standard_error(tmp_path: Path) -> None:
    """Also what no client is told of: logging to clients is not needed for that."""
    fail = {"name": "drill_fail", "arguments": {"kind": "exception"}}
    with piped(tmp_path) as server:
        server.send(stateless("tools/call", 1, **fail))
        server.close_input()
        [answer] = server.rest()
        assert answer["result"]["isError"] is True
        assert server.wait() == 0
        assert "A call failed (" in server.output
        assert "This exception was ordered by the caller." in server.output


def test_messages_of_both_eras_are_what_the_schemas_say(tmp_path: Path) -> None:
    methods = {"hello": "initialize", "add": "tools/call", "list": "tools/list"}
    newer = {"a": "server/discover", "b": "tools/call", "c": "tools/call"}
    with piped(tmp_path) as server:
        server.send(HELLO, READY, ADD, request("tools/list", {}, "list"))
        server.send(stateless("server/discover", "a"))
        server.send(stateless("tools/call", "b", name="drill_add"))
        ask: dict[str, Any] = {"name": "drill_ask", "arguments": {"question": "Why?"}}
        server.send(stateless("tools/call", "c", **ask))
        server.close_input()
        messages = server.rest()
        assert server.wait() == 0
    assert len(messages) == 6
    for message in messages:
        number = message["id"]
        version = "2026-07-28" if number in newer else "2025-11-25"
        method = {**methods, **newer}[number]
        assert wire_validator(version).check(message, method=method) == []
        if number == "c":
            # A question is no request of the server's.
            assert message["result"]["resultType"] == "input_required"


def test_nothing_is_said_of_what_runs_on_after_the_input(tmp_path: Path) -> None:
    """The client has left; readers of SDKs fail at a message then."""
    listen = {"notifications": {"toolsListChanged": True}}
    with piped(tmp_path) as server:
        server.send(HELLO, READY, called("drill_sleep", 1, seconds=600))
        server.send(called("drill_sleep", 2, seconds=0.1))
        server.send(stateless("subscriptions/listen", 3, **listen))
        while server.next().get("method") != "notifications/subscriptions/acknowledged":
            continue
        server.close_input()
        assert [each["id"] for each in server.rest()] == [2]
        assert server.wait() == 0


def test_a_task_that_asks_goes_on_in_the_same_process(tmp_path: Path) -> None:
    yes = {"action": "accept", "content": {"confirm": True}}
    call: dict[str, Any] = {"name": "confirm_delete", "arguments": {"filename": "f"}}
    with piped(tmp_path, TASK_TOOLS="1") as server:

        def ask(method: str, **params: Any) -> dict[str, Any]:
            meta = {**META, "io.modelcontextprotocol/clientCapabilities": TAKES_TASKS}
            server.send(request(method, {**params, "_meta": meta}, method))
            result: dict[str, Any] = server.answer(method)["result"]
            return result

        task = ask("tools/call", **call)["taskId"]
        for status in ("input_required", "completed"):
            until = time.monotonic() + PATIENCE_S
            while ask("tasks/get", taskId=task)["status"] != status:
                assert time.monotonic() < until
                time.sleep(0.1)
            ask("tasks/update", taskId=task, inputResponses={"confirm": yes})


@pytest.mark.long
def test_a_call_has_a_moment_to_end_after_the_input(tmp_path: Path) -> None:
    with piped(tmp_path) as server:
        server.send(HELLO, READY, called("drill_sleep_sync", 1, seconds=0.1))
        server.close_input()
        assert text(server.answer(1)) == "slept 0.1 s"
        assert server.wait() == 0


@pytest.mark.parametrize("tool", ["noise_hang", *long_cases("noise_thread")])
def test_it_ends_although_a_thread_hangs(tmp_path: Path, tool: str) -> None:
    with piped(tmp_path, NOISE="yes") as server:
        server.send(HELLO, READY, called(tool, 1), ADD)
        assert text(server.answer("add")) == "42"
        server.close_input()
        assert server.wait() == 0


@pytest.fixture
def heard_hangup() -> Iterator[None]:
    """Whoever runs the tests may ignore it (nohup), and so would what they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *long_cases(signal.SIGINT, signal.SIGHUP)]
)
@pytest.mark.usefixtures("heard_hangup")
def test_it_ends_in_order_at_a_signal(tmp_path: Path, number: int) -> None:
    listen = {"notifications": {"toolsListChanged": True}}
    with piped(tmp_path) as server:
        server.send(HELLO, READY, called("drill_sleep", 1, seconds=600))
        server.send(stateless("subscriptions/listen", 2, **listen))
        while server.next().get("method") != "notifications/subscriptions/acknowledged":
            continue
        server.process.send_signal(number)
        rest = server.rest()
        assert server.wait() == 0
        assert "Traceback" not in server.output
    assert [each["id"] for each in rest if "result" in each] == [2]
    assert [each["id"] for each in rest if "error" in each] == [1]
    assert [each["params"]["requestId"] for each in rest if "method" in each] == [2]
    for message in rest:
        version = "2025-11-25" if message.get("id") == 1 else "2026-07-28"
        method = "subscriptions/listen" if message.get("id") == 2 else None
        assert wire_validator(version).check(message, method=method) == []


def test_what_waited_is_answered_and_a_kill_is_the_end(tmp_path: Path) -> None:
    with piped(tmp_path) as server:
        server.send(HELLO, READY, called("drill_sleep", "long", seconds=600))
        server.answer("hello")
        server.process.send_signal(signal.SIGSTOP)
        server.send(*[request("ping", {}, number) for number in range(100)])
        server.process.send_signal(signal.SIGCONT)
        assert server.answer(99)["result"] == {}
        server.process.kill()
        assert server.rest() == []
        assert server.wait() == -signal.SIGKILL


def test_input_that_is_a_file_and_output_that_is_closed(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    env = environment(database(tmp_path))
    with lines.open("rb") as source:
        ended = subprocess.run(
            COMMAND, cwd=ROOT, env=env, stdin=source, capture_output=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    shell = f"head -c 200 {lines} | {' '.join(COMMAND)} | head -c 1"
    piped_on = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (piped_on.returncode, piped_on.stderr) == (0, b"")


def test_what_outlives_its_terminal_goes_on(tmp_path: Path) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with piped(tmp_path) as server:
            server.send(HELLO)
            server.answer("hello")
            server.process.send_signal(signal.SIGHUP)
            server.send(ADD)
            assert text(server.answer("add")) == "42"
            server.close_input()
            assert server.wait() == 0
    finally:
        signal.signal(signal.SIGHUP, ignored)


@pytest.mark.parametrize(
    "closed", ["<&-", *long_cases(">&-", "<&- >&-", "<&- >&- 2>&-")]
)
def test_without_input_or_output_it_says_so(tmp_path: Path, closed: str) -> None:
    """Nothing else that the process opens is taken for them."""
    ended = _with_descriptors(tmp_path, closed)
    assert (ended.returncode, ended.stdout) == (1, b"")
    said = "" if "2>" in closed else "mcp_stdio needs standard input and output"
    assert ended.stderr.decode().startswith(said)
    assert ended.stderr.count(b"\n") == (1 if said else 0)


def test_without_standard_error_what_is_printed_is_lost(tmp_path: Path) -> None:
    noise = called("noise_print", 1, way="descriptor", lines=1)
    lines = [json.dumps(each) for each in (HELLO, READY, noise)]
    ended = _with_descriptors(tmp_path, "2>&-", "\n".join(lines))
    assert ended.returncode == 0
    _, answer = ended.stdout.splitlines()
    assert text(json.loads(answer)) == "0"


def _with_descriptors(
    directory: Path, changed: str, given: str = ""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", f"exec {' '.join(COMMAND)} {changed}"],
        cwd=ROOT,
        env=environment(database(directory), NOISE="yes"),
        input=given.encode(),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_it_is_told_of_changes_in_other_processes(tmp_path: Path) -> None:
    program = "from mcp_app import notify; notify('tools')"
    with piped(tmp_path) as server:
        server.send(HELLO, READY)
        server.answer("hello")
        subprocess.run(
            [*COMMAND[:-1], "shell", "-v0", "-c", program],
            cwd=ROOT,
            env=environment(tmp_path / "db.sqlite3"),
            check=True,
        )
        assert server.next()["method"] == "notifications/tools/list_changed"


def test_a_subscription_ends_with_its_process(tmp_path: Path) -> None:
    with piped(tmp_path) as server:
        assert told_of_a_change(server, "mine") == {"mine"}
        server.process.kill()
    with piped(tmp_path, file=tmp_path / "db.sqlite3") as server:
        assert told_of_a_change(server, "anew") == {"anew"}


def told_of_a_change(server: Piped, number: str) -> set[str]:
    """Listen, and change something; return the subscriptions that are told."""
    wanted = {"notifications": {"toolsListChanged": True}}
    server.send(stateless("subscriptions/listen", number, **wanted))
    assert subscription(server.next()) == number
    server.send(stateless("tools/call", 1, name="test_trigger_tool_change"))
    messages = [server.next(), server.next()]
    server.send(stateless("tools/list", 2))
    while messages[-1].get("id") != 2:
        messages.append(server.next())
    told = {subscription(each) for each in messages if "method" in each}
    assert [each for each in messages if each.get("id") == 1]
    return told


def test_a_session_leaves_no_row(tmp_path: Path) -> None:
    count = (
        "from mcp_app import models as m;print(*[t._default_manager.count() for t in"
        " (m.Session, m.Stream, m.Event, m.Question, m.Subscription, m.Worker)])"
    )
    with piped(tmp_path) as server:
        server.send(HELLO, READY, called("drill_count", 1, n=3, delay_ms=1))
        uri = {"uri": "test://watched-resource"}
        server.send(request("resources/subscribe", uri, 2))
        server.answer(2)
        server.close_input()
        assert server.wait() == 0
    counted = subprocess.run(
        [*COMMAND[:-1], "shell", "-v0", "-c", count],
        cwd=ROOT,
        env=environment(tmp_path / "db.sqlite3"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert counted.stdout.split() == ["0"] * 6
