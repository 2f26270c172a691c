"""Requests of which no two are alike: whatever a server keeps by one must have a bound.

In turn their headers differ, their token, their path, and their session.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable
from dataclasses import replace

from benchmarks.client import TIMEOUT, WrongAnswerError
from benchmarks.messages import Request, call


def _other_headers(request: Request, number: int) -> Request:
    other = {
        "Accept": f"application/json;level={number}, text/event-stream",
        "Traceparent": f"00-{number:032x}-{number:016x}-01",
        "User-Agent": f"client/{number}",
        f"X-Header-{number}": "x",
    }
    return replace(request, headers={**request.headers, **other})


def _other_token(request: Request, number: int) -> Request:
    token = f"Bearer mcp_{number:043d}"
    return replace(request, headers={**request.headers, "Authorization": token})


def _the_same(request: Request, number: int) -> Request:
    return request


def _other_session(request: Request, number: int) -> Request:
    own = call("drill_add", session=f"{number:043d}")
    token = request.headers["Authorization"]
    return replace(own, headers={**own.headers, "Authorization": token})


_Kind = tuple[Callable[[Request, int], Request], str, int]
"""What makes the request, its path, and the status of the answer."""
KINDS: tuple[_Kind, ...] = (
    (_other_headers, "/mcp", 200),
    (_other_token, "/mcp", 401),
    (_the_same, "/mcp/server-{}", 404),
    (_other_session, "/mcp", 404),
)


def send_different(port: int, request: Request, numbers: Iterable[int]) -> None:
    """Send requests with these numbers on one connection, and see each answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        for number in numbers:
            make, path, status = KINDS[number % len(KINDS)]
            own = make(request, number)
            headers = dict(own.headers)
            connection.request("POST", path.format(number), own.body(number), headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != status:
                raise WrongAnswerError(
                    f"Request {number} is answered with HTTP {response.status}, "
                    f"{answer[:500]!r}."
                )
    finally:
        connection.close()
