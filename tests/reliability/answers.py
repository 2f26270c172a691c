"""Questions of one process, which are answered at others.

The first answer counts; one of another session is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from tests.process import streaming
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "question answered elsewhere"
LANES: Final = 10
TWICE: Final = 3
FOREIGN: Final = 7
"""The lanes, of ten, whose questions are answered twice, and by another session."""
ASKED: Final = 2
UNAVAILABLE: Final = 503
AGAIN_S: Final = 0.1


def answers(site: Site, rounds: int) -> Generator[Round]:
    with ThreadPoolExecutor(LANES) as pool:
        for first in range(0, rounds, LANES):
            numbers = range(first, min(first + LANES, rounds))
            yield from pool.map(partial(_round, site), numbers)


def _round(site: Site, number: int) -> Round:
    urls = site.cluster.urls
    here, there, elsewhere = (urls[(number + each) % len(urls)] for each in range(3))
    session, wrong = opened(here), 0
    sent(session, streaming.INITIALIZED)
    ask = partial(session.called, "drill_ask_twice", question=f"Which, {number}?")
    call = again(lambda: ask().until(lambda each: each.status))
    for count in range(1, ASKED + 1):
        call.until(lambda each, count=count: len(each.messages) >= count)  # type: ignore[misc]
        question = call.messages[count - 1]["id"]
        if number % LANES == FOREIGN:
            foreign = sent(opened(there), _reply(question, "foreign"))
            wrong += foreign.status != 400
        first = sent(session.at(there), _reply(question, f"answer {count}"))
        wrong += first.status != 202
        if number % LANES == TWICE:
            second = sent(session.at(elsewhere), _reply(question, "too late"))
            wrong += second.status != 202
    call.wait()
    last = call.messages[-1] if call.messages else {}
    text = last.get("result", {}).get("content", [{}])[0].get("text")
    wrong += text is not None and text != "answer 1 answer 2"
    session.close().whole()
    return Round(test=TEST, asked=ASKED, wrong=wrong, unanswered=text is None)


def opened(url: str) -> streaming.Session:
    """Open a session at a process, once it takes one."""
    until = time.monotonic() + streaming.PATIENCE_S
    while True:
        try:
            return streaming.Session(url)
        except streaming.SessionRefused as refused:
            if refused.status != UNAVAILABLE or time.monotonic() >= until:
                raise
        time.sleep(AGAIN_S)


def sent(session: streaming.Session, body: bytes) -> streaming.Answer:
    """Send an answer, until it is taken or refused for good.

    An answer that a process has not taken is one that nobody has given: its call would
    wait for as long as it may.
    """
    return again(lambda: session.send(body).whole())


def again(send: Callable[[], streaming.Answer]) -> streaming.Answer:
    """Send something; again where a process says that it cannot take it for now.

    So it says where a check of the database took too long.
    """
    until = time.monotonic() + streaming.PATIENCE_S
    while True:
        answer = send()
        if answer.status != UNAVAILABLE or time.monotonic() >= until:
            return answer
        time.sleep(AGAIN_S)


def _reply(question: str, text: str) -> bytes:
    result = {"action": "accept", "content": {"answer": text}}
    return streaming.encoded(id=question, result=result)
