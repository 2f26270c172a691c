"""Questions of one process, which are answered at others.

The first answer counts; one of another session is refused.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from benchmarks.reliability.rounds import Round
from benchmarks.reliability.site import Site
from tests.process.streaming import Session

TEST: Final = "question answered elsewhere"
LANES: Final = 10
TWICE: Final = 3
FOREIGN: Final = 7
"""The lanes, of ten, whose questions are answered twice, and by another session."""
ASKED: Final = 2


def answers(site: Site, rounds: int) -> Generator[Round]:
    """Yield calls that ask two questions each."""
    with ThreadPoolExecutor(LANES) as pool:
        for first in range(0, rounds, LANES):
            numbers = range(first, min(first + LANES, rounds))
            yield from pool.map(partial(_round, site), numbers)


def _round(site: Site, number: int) -> Round:
    urls = site.cluster.urls
    here, there, elsewhere = (urls[(number + each) % len(urls)] for each in range(3))
    session, wrong = Session(here), 0
    call = session.called("drill_ask_twice", question=f"Which, {number}?")
    for count in range(1, ASKED + 1):
        call.until(lambda each, count=count: len(each.messages) >= count)  # type: ignore[misc]
        question = call.messages[count - 1]["id"]
        if number % LANES == FOREIGN:
            foreign = Session(there).send(_reply(question, "foreign")).whole()
            wrong += foreign.status != 400
        first = session.at(there).send(_reply(question, f"answer {count}"))
        wrong += first.whole().status != 202
        if number % LANES == TWICE:
            second = session.at(elsewhere).send(_reply(question, "too late"))
            wrong += second.whole().status != 202
    call.wait()
    last = call.messages[-1] if call.messages else {}
    text = last.get("result", {}).get("content", [{}])[0].get("text")
    wrong += text is not None and text != "answer 1 answer 2"
    session.close().whole()
    return Round(test=TEST, asked=ASKED, wrong=wrong, unanswered=text is None)


def _reply(question: str, text: str) -> bytes:
    result = {"action": "accept", "content": {"answer": text}}
    return json.dumps({"jsonrpc": "2.0", "id": question, "result": result}).encode()
