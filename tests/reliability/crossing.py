"""Two hundred sessions that all say id 1: each gets its own, and nothing of another's.

Each call has a payload that no other has, so that a foreign one is known wherever it
turns up: in an answer, in a question, or on a standing stream.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.process.streaming import (
    INITIALIZED,
    PATIENCE_S,
    Answer,
    Session,
    encoded,
    stateless_request,
)
from tests.reliability.answers import again, opened, sent
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "200 sessions, one id"
SESSIONS: Final = 200
IN_SESSIONS: Final = 5
STATELESS: Final = 5
CALLS: Final = IN_SESSIONS + STATELESS
"""Of a session: with one of them it asks, and waits until all sessions have asked."""
PAYLOAD: Final = re.compile(rb"payload-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Judged:
    foreign: bool
    """Something of another call came."""
    instead: str = ""
    """What came where something of its own is missing."""


def crossing(site: Site, rounds: int, sessions: int = SESSIONS) -> Generator[Round]:
    """Yield rounds of 2,000 calls, or of ten for each of fewer sessions."""
    for _ in range(rounds):
        asked = threading.Barrier(sessions)
        with ThreadPoolExecutor(sessions) as pool:
            found = list(pool.map(partial(_session, site, asked), range(sessions)))
        instead = [each for _, own in found for each in own]
        yield Round(
            test=TEST,
            asked=sessions * CALLS,
            wrong=sum(wrong for wrong, _ in found),
            unanswered=len(instead),
            instead="".join(instead[:1]),
        )


def _session(
    site: Site, asked: threading.Barrier, number: int
) -> tuple[int, list[str]]:
    urls = site.cluster.urls
    places = [urls[(number + each) % len(urls)] for each in range(len(urls))]
    session = opened(places[0])
    sent(session, INITIALIZED)
    standing = session.at(places[1]).standing() if number % 20 == 0 else None
    seen = [_asking(session, places, asked)]
    for call in range(1, IN_SESSIONS):
        seen.append(_called(session.at(places[call % len(places)])))
    for call in range(STATELESS):
        seen.append(_stateless(places[call % len(places)]))
    session.close().whole()
    wrong = sum(each.foreign for each in seen)
    if standing is not None:
        standing.wait()
        wrong += bool(PAYLOAD.search(standing.raw))
    return wrong, [each.instead for each in seen if each.instead]


def _payload() -> str:
    return f"payload-{secrets.token_hex(16)}"


def _judged(answer: Answer, *own: str) -> Judged:
    """Say whether there is all of one's own, and nothing of another's."""
    there, mine = set(PAYLOAD.findall(answer.raw)), {each.encode() for each in own}
    began = answer.raw[:500].decode(errors="replace")
    shown = f"{answer.status} {answer.error or ''} {began}"
    return Judged(bool(there - mine), shown if mine - there else "")


def _request(method: str, **params: object) -> bytes:
    return encoded(id=1, method=method, params=params)


def _asking(session: Session, places: list[str], barrier: threading.Barrier) -> Judged:
    question, answer = _payload(), _payload()
    body = _request("tools/call", name="drill_ask", arguments={"question": question})
    call = again(lambda: session.send(body).until(lambda each: each.status))
    call.until(lambda each: each.messages)
    barrier.wait(PATIENCE_S)
    result = {"action": "accept", "content": {"answer": answer}}
    reply = encoded(id=call.messages[0]["id"], result=result)
    sent(session.at(places[-1]), reply)
    call.wait()
    return _judged(call, question, answer)


def _called(session: Session) -> Judged:
    """Call what may run twice: else an id is good for one call of a session."""
    payload = _payload()
    body = _request("tools/call", name="drill_echo", arguments={"value": payload})
    return _judged(sent(session, body), payload)


def _stateless(url: str) -> Judged:
    payload = _payload()
    given = {"value": payload}
    headers, body = stateless_request("tools/call", name="drill_echo", arguments=given)
    one = json.dumps({**json.loads(body), "id": 1}).encode()
    answer = again(lambda: Answer(url, "POST", headers, one).whole())
    return _judged(answer, payload)
