"""Arguments become parts of a request: one segment, one pair, one value of a body."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from mcp_app.egress.requests import Secrets, SiteAnswer, SiteRequest, check_path
from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import Site
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import ExternalError
from mcp_app.kinds.http import request as request_module
from mcp_app.kinds.http.config import HttpCall, pairs_from_json
from mcp_app.kinds.http.request import Media, content_of, refusal_error, request_for
from mcp_app.kinds.other_sites import IN_THREAD

SITE = Site(
    key="peer", title="Peer", scheme="https", host="peer.example", port=443, prefix=""
)


def request(values: dict[str, Any], path: str = "/x", **parts: Any) -> SiteRequest:
    for name in ("query", "headers"):
        parts[name] = pairs_from_json(parts.get(name, ()))
    call = HttpCall(site=SITE, path=path, method=parts.pop("method", "POST"), **parts)
    return request_for(call, values, idempotent=False)


@pytest.mark.parametrize(
    ("path", "value", "sent"),
    [
        ("/a/{{x}}", "b", "/a/b"),
        ("/a/{{x}}.json", 5, "/a/5.json"),
        ("/a/{{x}}", "c..d", "/a/c..d"),
        ("/a%2f{{x}}/", "https:evil", "/a%2fhttps%3Aevil/"),
        ("/a/{{x}}", "a?b#c", "/a/a%3Fb%23c"),
        ("/a/{{x}}", "{{x}}", "/a/%7B%7Bx%7D%7D"),
        ("/a/{{x}}", "é", "/a/%C3%A9"),
        ("/é b/{{x}}", "c", "/%C3%A9%20b/c"),
        ("/a/{{x}}", ["b", "c,d"], "/a/b,c%2Cd"),
        ("/a/{{x}}", True, "/a/true"),
    ],
)
def test_values_of_a_path(path: str, value: object, sent: str) -> None:
    made = request({"x": value}, path)
    assert made.path == sent
    assert made.log_path == path
    check_path(made.path)


def test_a_path_without_its_value() -> None:
    values: list[Any] = ["", None, []]
    for value in values:
        with pytest.raises(Forbidden, match="The value of x"):
            request({"x": value}, "/a/{{x}}/b")


SLASHES = ["/", "\\", "%2f", "%2F", "%5c", "%5C", "%252f", "%255C", "%25%32%66"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("/a/{{x}}", f"1{slash}keys") for slash in SLASHES),
        ("/a/{{x}}", "//evil/x"),
        ("/a/{{x}}", "https://evil/"),
        ("/a/{{x}}", ["1", "b/c"]),
        ("/a/{{x}}", {"b/c": 1}),
        ("/a/{{x}}2f", "%"),
        ("/a/{{y}}{{x}}", "2f"),
        ("/a/{{x}}/b/{{last}}", "1/keys"),
    ],
)
def test_a_value_with_a_slash(path: str, value: object) -> None:
    """Many servers decode a path before they choose what answers."""
    segments = "several" if "last" in path else ""
    values = {"x": value, "y": "%", "last": "c/d"}
    with pytest.raises(Forbidden, match="The value of x must be one segment"):
        request(values, path, segments=segments)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("b/c.txt", "/a/1/b/c.txt"),
        ("/b c/", "/a/1//b%20c/"),
        ("b%2fc\\d?e", "/a/1/b%252fc%5Cd%3Fe"),
        ("..", None),
        ("b/../c", None),
        ("b/%2e%2E/c", None),
        ("b/%252e%252e", None),
        ("b%5c..", None),
    ],
)
def test_the_last_value_may_have_several_segments(value: str, sent: str | None) -> None:
    values = {"x": "1", "last": value}
    path = request(values, "/a/{{x}}/{{last}}", segments="several").path
    with nullcontext() if sent else pytest.raises(Forbidden):
        check_path(path)
    assert sent in (None, path)


WHOLE = ("..", "%252e%252e", "%2e%2e", "%2e.", "%2e%2e%2fadmin", "a\r\nX: y", "a\x00")
CLIMBING = ("../../admin", "x/../../../admin.txt", "..\\admin")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("/f/{{x}}", value) for value in (*WHOLE, *CLIMBING)),
        *(("/f/.{{x}}", "."), ("/f/{{x}}%2e", "."), ("/f/{{x}}{{x}}", ".")),
        *(("/f/%2{{x}}", "e"), ("/f/{{x}}2e", "%"), ("/f/{{x}}..%2fadmin", "a/")),
    ],
)
def test_values_that_would_leave_the_path(path: str, value: str) -> None:
    with pytest.raises(Forbidden):
        check_path(request({"x": value}, path).path)


@drawn(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_is_one_segment_or_nothing(value: str) -> None:
    try:
        path = request({"x": value}, "/f/{{x}}/g").path
        check_path(path)
    except Forbidden:
        return
    assert path.count("/") == 3
    assert path.startswith("/f/")
    assert path.endswith("/g")


ARRAY = ["blue", "black", "b r"]
OBJECT = {"R": 100, "G": "2 0"}
DEEP = {"a&": {"b": None, "c": ["x", 5]}, "d": [{"e": True}, ["f"]], "g": []}


@pytest.mark.parametrize(
    ("style", "value", "sent"),
    [
        ("repeat", "", "color="),
        ("repeat", "b&c=d", "color=b%26c%3Dd"),
        ("repeat", ARRAY, "color=blue&color=black&color=b%20r"),
        ("repeat", OBJECT, "R=100&G=2%200"),
        ("commas", ARRAY, "color=blue,black,b%20r"),
        ("commas", OBJECT, "color=R,100,G,2%200"),
        ("commas", "blue", "color=blue"),
        ("spaces", ARRAY, "color=blue%20black%20b%20r"),
        ("pipes", ARRAY, "color=blue%7Cblack%7Cb%20r"),
        ("pipes", OBJECT, "color=R%7C100%7CG%7C2%200"),
        ("brackets", OBJECT, "color[R]=100&color[G]=2%200"),
        ("brackets", ARRAY, "color[]=blue&color[]=black&color[]=b%20r"),
        (
            "brackets",
            DEEP,
            "color[a%26][b]=&color[a%26][c][]=x&color[a%26][c][]=5"
            "&color[d][0][e]=true&color[d][1][]=f",
        ),
        ("brackets", [{"e": 1}, {"e": 2}], "color[0][e]=1&color[1][e]=2"),
        ("repeat", [], ""),
        ("commas", {}, ""),
        ("repeat", None, ""),
        ("repeat", False, "color=false"),
    ],
)
def test_values_of_a_query(style: str, value: object, sent: str) -> None:
    """As OpenAPI's tables of style and explode have them (3.1, "Style Examples")."""
    query = [{"name": "color", "value": "{{x}}", "style": style}]
    assert request({"x": value}, query=query).query == sent


@pytest.mark.parametrize("name", ["tenant", "api_key"])
@pytest.mark.parametrize("style", ["repeat", "brackets", "commas"])
def test_an_object_changes_no_other_pair(name: str, style: str) -> None:
    """Not those of the call, nor those of the settings."""
    site = replace(SITE, secret_query={"api_key": "canary-123", "q[api_key]": "x"})
    pair = {"name": "q", "value": "{{q}}", "style": style}
    others = [{"name": "tenant", "value": "1"}, {"name": "q[tenant]", "value": "1"}]
    call = HttpCall(
        site=site, path="/", method="GET", query=pairs_from_json([*others, pair])
    )
    values = {"q": {"a": "b", name: "2"}}
    if style == "commas":
        query = request_for(call, values, idempotent=False).query
        assert query.endswith(f"&q=a,b,{name},2")
        return
    with pytest.raises(Forbidden, match="which the call itself sends"):
        request_for(call, values, idempotent=False)


def test_pairs_with_text_around_values() -> None:
    query = [
        {"name": "q", "value": "from:{{who}} to:{{whom}}"},
        {"name": "fixed", "value": "a b"},
        {"name": "none", "value": "{{missing}}"},
        {"name": "part", "value": "x{{missing}}"},
        {"name": "a[b]", "value": "c"},
    ]
    made = request({"who": "lee", "whom": 5}, query=query)
    assert made.query == "q=from%3Alee%20to%3A5&fixed=a%20b&a[b]=c"


def test_headers() -> None:
    headers = [
        {"name": "Accept-Language", "value": "{{language}}"},
        {"name": "X-Trace", "value": "{{missing}}"},
        {"name": "X-Fixed", "value": "a"},
    ]
    made = request({"language": "de"}, headers=headers)
    assert made.headers == [("Accept-Language", "de"), ("X-Fixed", "a")]


def test_a_body_of_json() -> None:
    body = {
        "json": {
            "text": "{{text}}",
            "number": "{{number}}",
            "list": ["{{number}}", "{{missing}}", "x{{number}}", None],
            "gone": "{{missing}}",
            "null": "{{null}}",
            "nested": {"object": "{{object}}", "gone": "{{missing}}"},
            "fixed": 5,
        }
    }
    values = {"text": 'a"b', "number": 7, "object": {"c": [1.5]}, "null": None}
    made = request(values, body=body)
    assert made.headers == [("Content-Type", "application/json")]
    assert json.loads(made.body or b"") == {
        "text": 'a"b',
        "number": 7,
        "list": [7, "x7", None],
        "null": None,
        "nested": {"object": {"c": [1.5]}},
        "fixed": 5,
    }


def test_a_body_that_is_one_value() -> None:
    assert request({"x": [1]}, body={"json": "{{x}}"}).body == b"[1]"
    assert request({"x": None}, body={"json": "{{x}}"}).body == b"null"
    left_out = request({}, body={"json": "{{x}}"})
    assert (left_out.body, left_out.headers) == (None, [])


def test_a_body_of_a_form() -> None:
    form = [
        {"name": "subject", "value": "{{subject}}"},
        {"name": "tag", "value": "{{tags}}"},
    ]
    made = request({"subject": "a&b c", "tags": ["d", "e"]}, body={"form": form})
    assert made.body == b"subject=a%26b%20c&tag=d&tag=e"
    assert made.headers == [("Content-Type", "application/x-www-form-urlencoded")]


def test_a_body_of_text() -> None:
    body = {"text": "Dear {{name}}é", "type": "text/plain; charset=utf-8"}
    made = request({"name": "Lee"}, body=body)
    assert made.body == "Dear Leeé".encode()
    assert made.headers == [("Content-Type", "text/plain; charset=utf-8")]


def test_a_body_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_module, "MOST_BODY", 10)
    assert request({"x": "a" * 8}, body={"json": "{{x}}"}).body is not None
    with pytest.raises(Forbidden, match="larger than 10 bytes"):
        request({"x": "a" * 9}, body={"json": "{{x}}"})


@pytest.mark.parametrize(("method", "idempotent"), [("GET", True), ("POST", False)])
def test_what_may_be_sent_twice(method: str, idempotent: bool) -> None:
    made = request({}, method=method)
    assert made.idempotent is idempotent
    assert made.body is None


# -- answer ----------------------------------------------------------------------------


SECRETS = Secrets({"X-Key": "canary-123"}, {})
TICKETS: dict[str, Any] = {
    "tickets": [{"id": n, "user": {"name": "a", "age": 1}} for n in range(3)],
    "none": [],
}
NOTHING = "is there, so no member is left out."


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


async def test_json() -> None:
    for media_type in ("application/json; charset=utf-8", "a/b+json"):
        assert await content({"a": [1, None]}, media_type) == {"a": [1, None]}
    # In a thread.
    large = ["a" * IN_THREAD]
    assert await content(large) == large


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ({"take": "tickets.1.id"}, 1),
        ({"take": "tickets.0.user", "keep": ["name", "no"]}, {"name": "a"}),
        (
            {"take": "tickets", "keep": ["id", "user.name"], "limit": 3},
            [{"id": n, "user": {"name": "a"}} for n in range(3)],
        ),
        (
            {"take": "tickets", "keep": ["id"], "limit": 2},
            {"result": [{"id": 0}, {"id": 1}], "note": "These are the first 2 of 3."},
        ),
        (
            {"keep": ["no", "id"]},
            {"result": TICKETS, "note": f"None of no, id {NOTHING}"},
        ),
        (
            {"take": "tickets", "keep": ["a"], "limit": 1},
            {
                "result": TICKETS["tickets"][:1],
                "note": f"None of a {NOTHING} These are the first 1 of 3.",
            },
        ),
        ({"take": "none", "keep": ["a"]}, []),
        ({"take": "tickets.0.id", "keep": ["a"]}, 0),
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
    said = await failure(b"<p>", "text/html", take="a")
    assert said == "The answer of Peer is no JSON."


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
    assert await content(b"", take="a") is None


async def test_secrets_do_not_come_back() -> None:
    escaped = b'{"a": "\\u0063anary-123", "canary-123": ["xcanary-123x"]}'
    assert await content(escaped) == {"a": "•••", "•••": ["x•••x"]}
    assert await content(b"my canary-123", "text/plain") == "my •••"


def told(status: int, body: object = b"", media_type: str = "", **headers: str) -> str:
    errors = {"409": "There is a ticket for {{subject}} already."}
    given = answer(body, media_type, status, **headers)
    error = refusal_error(call(errors=errors), given, {"subject": "cake"})
    is_callers = status // 100 == 4 and status not in (401, 403, 407, 429)
    assert error.outcome == (Outcome.TOOL_ERROR if is_callers else Outcome.OTHER_SITE)
    # The log of calls says the same as the client reads.
    assert error.detail == ("" if is_callers else f"{status}: ") + error.message
    return error.message


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (409, "There is a ticket for cake already."),
        (401, "Peer did not accept this site's key. Do not retry; tell the user."),
        (403, "Peer did not accept this site's key. Do not retry; tell the user."),
        (404, "Peer has nothing there."),
        (407, "Peer did not take the request (407)."),
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
