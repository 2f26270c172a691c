"""What clients get of an answer, and what they read of a refusal."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from mcp_app.egress.requests import Secrets, SiteAnswer
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError
from mcp_app.kinds.http.config import HttpCall
from mcp_app.kinds.http.request import IN_THREAD, Media, content_of, refusal
from tests.kinds.http.test_request import SITE

SECRETS = Secrets({"X-Key": "canary-123"}, {})
TICKETS = {"tickets": [{"id": n, "user": {"name": "a", "age": 1}} for n in range(3)]}


def call(**parts: Any) -> HttpCall:
    return HttpCall(site=SITE, method="GET", path="/", **parts)


def answer(
    body: object,
    media_type: str = "application/json",
    status: int = 200,
    **headers: str,
) -> SiteAnswer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return SiteAnswer(
        status=status,
        headers={"content-type": media_type, **headers},
        body=content,
        took=0.1,
        secrets=SECRETS,
    )


async def content(
    body: object, media_type: str = "application/json", **parts: Any
) -> Any:
    return await content_of(call(**parts), answer(body, media_type))


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "a/b+json"])
async def test_json(media_type: str) -> None:
    assert await content({"a": [1, None]}, media_type) == {"a": [1, None]}


async def test_json_in_a_thread() -> None:
    large = ["a" * IN_THREAD]
    assert await content(large) == large


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ({"take": "tickets.1.id"}, 1),
        ({"take": "tickets.0.user", "keep": ["name", "no"]}, {"name": "a"}),
        (
            {"take": "tickets", "keep": ["id", "user.name"], "most": 3},
            [{"id": n, "user": {"name": "a"}} for n in range(3)],
        ),
        (
            {"take": "tickets", "keep": ["id"], "most": 2},
            {
                "result": [{"id": 0}, {"id": 1}],
                "note": "These are the first 2 of 3.",
            },
        ),
        ({"keep": ["nothing"]}, {}),
    ],
)
async def test_what_is_taken_and_kept(parts: dict[str, Any], left: object) -> None:
    assert await content(TICKETS, **parts) == left


async def failure(
    body: object, media_type: str = "application/json", **parts: Any
) -> str:
    with pytest.raises(ExternalError) as caught:
        await content(body, media_type, **parts)
    assert caught.value.outcome == Outcome.SHAPE
    return caught.value.message


@pytest.mark.parametrize("take", ["ticket", "tickets.9", "tickets.x", "tickets.0.id.x"])
async def test_what_is_not_there(take: str) -> None:
    assert await failure(TICKETS, take=take) == f"The answer of Peer has no “{take}”."


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"{", b"[NaN]", b"[1e999]", b"[" * 200 + b"]" * 200, b'"\\ud800"'],
)
async def test_json_that_cannot_be_read(body: bytes) -> None:
    assert await failure(body) == "The answer of Peer is no JSON that can be read."


async def test_html_where_json_is_to_be_taken() -> None:
    assert (
        await failure(b"<p>", "text/html", take="a") == "The answer of Peer is no JSON."
    )


async def test_text() -> None:
    body = b"a\x1b[31mred\x1b[0m\x00\r\nb\tc\x1b]0;title\x07"
    assert await content(body, "text/plain") == "ared\nb\tc"
    assert await content("é".encode("latin-1"), "text/plain; charset=latin-1") == "é"
    assert await content("é".encode(), "text/plain; charset=no-such") == "é"
    assert await content(b"\xff", "text/csv") == "\ufffd"


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("ISO-8859-1", b"\xe9", "é"),
        ('"windows-1252"', b"\x80", "€"),
        ("shift_jis", b"\x83\x65", "テ"),
        ("utf-16", "é".encode("utf-16"), "é"),
        # Python knows these, and no browser does: slow, or not of characters.
        ("punycode", b"-ab", "-ab"),
        ("idna", b"xn--", "xn--"),
        ("undefined", b"a", "a"),
        ("unicode_escape", rb"\ud800", r"\ud800"),
        ("utf-8-sig", b"a", "a"),
        ("utf-16", b"\x00\xd8", "\ufffd"),
        ("iso-8859-12", b"a", "a"),
        ("none-such", b"a", "a"),
    ],
)
async def test_character_sets(charset: str, body: bytes, text: str) -> None:
    assert await content(body, f"text/plain; charset={charset}") == text


async def test_a_large_text_is_read_in_a_thread() -> None:
    threads = []

    class Watched(Secrets):
        def blot(self, value: Any) -> Any:
            threads.append(threading.current_thread())
            return super().blot(value)

    for size in (1, IN_THREAD):
        given = replace(answer(b"a" * size, "text/plain"), secrets=Watched({}, {}))
        assert await content_of(call(), given) == "a" * size
        main = threading.main_thread()
        assert (threads[-1] is main) is (size == 1)


async def test_other_media() -> None:
    assert await content(b"\x89PNG", "image/png") == Media(b"\x89PNG", "image/png")


async def test_nothing() -> None:
    assert await content(b"", take="a") is None


async def test_secrets_do_not_come_back() -> None:
    escaped = b'{"a": "\\u0063anary-123", "canary-123": ["xcanary-123x"]}'
    assert await content(escaped) == {"a": "•••", "•••": ["x•••x"]}
    assert await content(b"my canary-123", "text/plain") == "my •••"


def told(status: int, body: object = b"", media_type: str = "", **headers: str) -> str:
    errors = {"409": "There is a ticket for {{subject}} already."}
    given = answer(body, media_type, status, **headers)
    error = refusal(call(errors=errors), given, {"subject": "cake"})
    assert error.outcome == Outcome.OTHER_SITE
    assert error.detail.startswith(f"{status}: ")
    return error.message


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (409, "There is a ticket for cake already."),
        (401, "Peer did not accept this site's key. Do not retry; tell the user."),
        (403, "Peer did not accept this site's key. Do not retry; tell the user."),
        (404, "Peer has nothing there."),
        (422, "Peer did not take the request (422)."),
        (499, "Peer did not take the request (499)."),
        (302, "Peer failed (302)."),
        (500, "Peer failed (500)."),
        (999, "Peer failed (999)."),
    ],
)
def test_refusals(status: int, said: str) -> None:
    assert told(status) == said


@pytest.mark.parametrize(
    ("after", "when"),
    [
        ("20", "in 20 seconds"),
        ("99999", "in 3600 seconds"),
        ("Wed, 25 Nov 2026 22:00:00 GMT", "later"),
        ("-1", "later"),
    ],
)
def test_busy_sites(after: str, when: str) -> None:
    said = told(429, **{"retry-after": after})
    assert said == f"Peer is busy. Try again {when}."


def test_what_a_site_says_of_a_request() -> None:
    said = told(422, {"subject": "Too\nlong; canary-123."}, "application/problem+json")
    assert said == (
        'Peer did not take the request (422). {"subject":"Too\\nlong; •••."}'
    )
    long = told(400, b"a " * 600, "text/plain")
    assert len(long) == len("Peer did not take the request (400). ") + 499
    assert told(400, b"{", "application/json") == "Peer did not take the request (400)."
    assert told(400, b"\x00", "image/png") == "Peer did not take the request (400)."
