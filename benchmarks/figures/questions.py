"""Whether sync functions that wait for a person hold up anything but themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks import servers
from benchmarks.client import (
    EventStream,
    WrongAnswerError,
    checked,
    notify,
    open_session,
    streams,
)
from benchmarks.measuring import AtMost, Effort, Result
from benchmarks.messages import JsonObject, call, is_sum, is_text
from benchmarks.processes import Process

QUESTIONS = 20
CALLS = 100


def left_open(effort: Effort) -> Iterator[Result]:
    """Leave 20 sync tools waiting for an answer, and call 100 others at once."""
    with servers.drill() as server:
        port = server.port
        sessions = [open_session(port, {"elicitation": {}}) for _ in range(QUESTIONS)]
        asks = [
            call("drill_ask_sync", {"question": "Who?"}, session=session)
            for session in sessions
        ]
        with streams(port, asks) as opened:
            questions = [stream.wait_for("elicitation/create") for stream in opened]
            seconds = _all_answered(server)
            for asked in zip(sessions, opened, questions, strict=True):
                _answer(port, *asked)
    yield Result(
        figure=f"{CALLS} sync calls beside {QUESTIONS} open questions",
        measured=seconds,
        bound=AtMost(2),
        unit="s",
    )


def _all_answered(server: Process) -> float:
    """Return the seconds in which all calls, made at once, were answered right."""
    add = call("drill_add_sync")
    with ThreadPoolExecutor(CALLS) as pool:
        start = time.monotonic()
        replies = [pool.submit(checked, server.port, add, is_sum) for _ in range(CALLS)]
        for reply in replies:
            reply.result()
        return time.monotonic() - start


def _answer(port: int, session: str, stream: EventStream, question: JsonObject) -> None:
    """Answer a question: its tool, which was waiting all the time, then returns."""
    answer = {"action": "accept", "content": {"answer": "me"}}
    notify(port, session, {"id": question["id"], "result": answer})
    for message in stream.messages():
        if "result" in message and is_text("me")(message["result"]):
            return
    raise WrongAnswerError("The tool did not return the answer to its question.")
