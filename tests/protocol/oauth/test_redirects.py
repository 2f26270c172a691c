"""Where an answer may be sent, and when two redirects are the same."""

from __future__ import annotations

import re
from itertools import product
from urllib.parse import parse_qsl, urlsplit

import pytest

from mcp_app.protocol.oauth.addresses import (
    FORBIDDEN_SCHEMES,
    is_loopback,
    is_private_use,
    is_same_redirect,
    redirect_host,
    redirect_problem,
    scheme_problem,
    with_answer,
)

SCHEMES = ["cursor", "com.example.App"]
ALLOWED = [
    "https://claude.ai/api/mcp/auth_callback",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    "https://vscode.dev/redirect",
    "https://a.example",
    "https://a.example:8443/b?c=d",
    "https://a.example/b?coder=1&states=2&x=code",
    "https://1.2.3.4/b",
    "https://[2001:db8::1]/b",
    "https://localhost/b",
    "http://127.0.0.1:33418/",
    "http://127.0.0.1",
    "http://[::1]:8/b",
    "http://localhost:8787/callback",
    "HTTP://LOCALHOST/b",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "CURSOR://a/b",
    "cursor:a",
    "cursor://a.b:1?c=d@e:f",
    "com.example.app:/oauth2redirect?a=b",
    "https://a.example/" + "b" * 482,
]
REFUSED: list[tuple[object, str]] = [
    (None, "no text"),
    (5, "no text"),
    (b"https://a.example", "no text"),
    (["https://a.example"], "no text"),
    ("", "no text"),
    ("https://a.example/" + "b" * 483, "500 characters"),
    ("a.example/b", "scheme"),
    ("//a.example/b", "scheme"),
    ("/b", "scheme"),
    ("*", "scheme"),
    ("https://*.example/b", "host"),
    ("https:///b", "host"),
    ("https:a.example", "absolute"),
    ("https:/a.example", "absolute"),
    ("https://a@b.example", "user part"),
    ("https://a.example\\@b.example/", "characters"),
    ("https://a.example/\tb", "characters"),
    (" https://a.example/", "characters"),
    ("https://a.example/ b", "characters"),
    ("https://a.example/b#", "fragment"),
    ("https://a.example/b#c", "fragment"),
    ("https://a.example./b", "host"),
    ("http://a.example/b", "http is allowed on"),
    ("http://127.0.0.1.evil.example/", "http is allowed on"),
    ("http://localhost.evil.example/", "http is allowed on"),
    ("http://evil.localhost/", "http is allowed on"),
    ("http://127.0.0.2/", "http is allowed on"),
    ("http://0.0.0.0/", "http is allowed on"),
    ("http://[::]/", "http is allowed on"),
    ("http://[::ffff:127.0.0.1]/", "http is allowed on"),
    ("http://2130706433/", "IPv4"),
    ("http://127.1/", "IPv4"),
    ("http://localhost./", "host"),
    ("http://localhost:0/", "host"),
    ("http://localhost:/", "host"),
    ("http://localhost:80@evil.example/", "user part"),
    ("http://localhost%2eevil.example/", "host"),
    ("http://[::1]:x/", "host"),
    ("http://[::1]evil.example/", "host"),
    ("https://a.example/?code=1", "code"),
    ("https://a.example/?b=c&state", "state"),
    ("https://a.example/?iss=", "iss"),
    ("https://a.example/?error=a", "error"),
    ("https://a.example/?error_description=a", "error_description"),
    ("https://a.example/?c%6Fde=1", "code"),
    ("https://a.example/?a=b;code=1", "code"),
    ("https://a.example/?a=b?code=1", "code"),
    ("https://a.example/?CODE=1", "CODE"),
    ("https://a.example/?+code%5B0%5D=1", "code"),
    ("https://a.example/?%20st%61te%20=", "state"),
    ("cursor://a/b?state=1", "state"),
    ("vscode://a/b", "scheme"),
    ("com.example:/b", "scheme"),
    ("cursor:", "host"),
    ("cursor://", "host"),
    ("cursor:///b", "host"),
    ("cursor://?b", "host"),
    ("cursor:?a", "host"),
    ("cursor://a@b/c", "host"),
    ("cursor://:80/a", "host"),
    ("cursor://a:b/c", "host"),
    ("cursor://[a]/b", "host"),
    ("cursor://a/b#c", "fragment"),
    ("cursor://a\\b", "characters"),
    ("cursor:[a]", "brackets"),
    ("javascript:alert(1)", "scheme"),
    ("JavaScript://a.example/%0aalert(1)", "scheme"),
    ("java\tscript:alert(1)", "characters"),
    (" javascript:alert(1)", "characters"),
    ("data:text/html,a", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("blob:https://a.example/b", "scheme"),
    ("urn:ietf:wg:oauth:2.0:oob", "scheme"),
]


def test_where_an_answer_may_be_sent() -> None:
    for uri in ALLOWED:
        assert redirect_problem(uri, SCHEMES) is None, uri


def test_where_none_may_be_sent() -> None:
    for uri, reason in REFUSED:
        problem = redirect_problem(uri, SCHEMES)
        assert reason in (problem or ""), uri


def test_what_may_never_be_a_scheme() -> None:
    """Not even where the settings name it."""
    for scheme in FORBIDDEN_SCHEMES - {"http", "https"}:
        assert redirect_problem(f"{scheme}://a/b", [scheme]) is not None, scheme
        assert not is_private_use(f"{scheme}:a")
        assert scheme_problem(scheme.upper()) is not None
    assert redirect_problem("http://a.example", ["http", "HTTP"]) is not None


def test_schemes_of_settings() -> None:
    for scheme in ("cursor", "com.example.app", "vscode-insiders", "a+b", "A1"):
        assert scheme_problem(scheme) is None, scheme
    for bad in ("", "1a", "a b", "a:", "a://", "-a", "é", "a\n", "https", None, 5):
        assert scheme_problem(bad) is not None, bad


SAME = [
    ("https://a.example/b", "https://a.example/b"),
    ("cursor://a/b", "cursor://a/b"),
    ("http://localhost/callback", "http://localhost:51234/callback"),
    ("http://127.0.0.1:33418/", "http://127.0.0.1:40000/"),
    ("http://127.0.0.1:33418/", "http://127.0.0.1/"),
    ("http://[::1]/a?b=c", "http://[::1]:5/a?b=c"),
    ("http://127.0.0.1", "http://127.0.0.1:9"),
    ("https://localhost:1/a", "https://localhost:2/a"),
]
ANOTHER = [
    ("https://a.example/b", "https://a.example/b/"),
    ("https://a.example/b", "https://a.example/B"),
    ("https://a.example/b", "https://A.example/b"),
    ("https://a.example/b", "HTTPS://a.example/b"),
    ("https://a.example/b", "https://a.example:443/b"),
    ("https://a.example:1/b", "https://a.example:2/b"),
    ("https://a.example/b", "https://a.example/b?c"),
    ("https://a.example/b", "https://a.example/b?"),
    ("https://a.example/b", "https://a.example/b#"),
    ("https://a.example/b", "https://a.example/./b"),
    ("https://a.example/b", "https://a.example/%62"),
    ("https://a.example/b", "https://a.example/b/../c"),
    ("https://a.example/b", "https://a.example.evil.example/b"),
    ("https://a.example/b", "https://a.example@evil.example/b"),
    ("https://a.example/b", "http://a.example/b"),
    ("https://a.example/b", ""),
    ("http://localhost/b", "http://127.0.0.1/b"),
    ("http://localhost/b", "http://[::1]/b"),
    ("http://localhost/b", "https://localhost/b"),
    ("http://localhost/b", "http://LOCALHOST/b"),
    ("http://localhost/b", "http://localhost:9/c"),
    ("http://localhost/b", "http://localhost:9/b?c"),
    ("http://localhost/b:7", "http://localhost:9/b:8"),
    ("http://localhost/b", "http://localhost:0/b"),
    ("http://localhost/b", "http://localhost:/b"),
    ("http://localhost/b", "http://localhost:65536/b"),
    ("http://localhost/b", "http://localhost:9\\b"),
    ("http://localhost/b", "http://localhost:9@evil.example/b"),
    ("http://localhost/b", "http://localhost.evil.example:9/b"),
    ("http://localhost/b", "http://localhost:9.evil.example/b"),
    ("http://localhost/b", "http://localhost:9/b#"),
    ("http://[::1]/b", "http://[::1]:9]/b"),
    ("http://[::1]/b", "http://[0::1]:9/b"),
    ("http://localhost?a=//b:7", "http://localhost?a=//b:8"),
    ("cursor://a:1/b", "cursor://a:2/b"),
    ("cursor://localhost:1/b", "cursor://localhost:2/b"),
]


def test_the_same_redirect() -> None:
    for registered, asked in SAME:
        assert is_same_redirect(registered, asked), asked


def test_another_redirect() -> None:
    for registered, asked in ANOTHER:
        assert not is_same_redirect(registered, asked), asked


def test_what_is_the_same_leads_to_the_same_place() -> None:
    """Whatever stands behind the host of a request: it is refused, or only a port."""
    tails = ["".join(each) for each in product([*":/?#@\\[]089. ", "", "a:"], repeat=3)]
    for start in ("http://localhost", "http://[::1]"):
        for tail in tails:
            asked = start + tail + "/b"
            if asked != start + "/b" and is_same_redirect(start + "/b", asked):
                assert redirect_problem(asked) is None
                assert re.fullmatch(r":[1-9][0-9]*", tail), asked


HOSTS = [
    ("https://Claude.AI:443/b", "claude.ai", False, False),
    ("https://a.example:8443/b", "a.example:8443", False, False),
    ("http://127.0.0.1:80/", "127.0.0.1", True, False),
    ("http://LOCALHOST:5?a", "localhost:5", True, False),
    ("http://[::1]/", "[::1]", True, False),
    ("https://localhost/", "localhost", True, False),
    ("https://localhost.a.example/", "localhost.a.example", False, False),
    ("https://xn--clude-9ka.example/", "xn--clude-9ka.example", False, False),
    ("cursor://localhost/b", "", False, True),
    ("com.example.app:/b", "", False, True),
]


def test_hosts() -> None:
    for uri, host, loopback, private_use in HOSTS:
        kind = (redirect_host(uri), is_loopback(uri), is_private_use(uri))
        assert kind == (host, loopback, private_use), uri
    for uri in ("", "a", "https:///b", "http://localhost:0/", "javascript:a"):
        assert not is_loopback(uri)
        assert not is_private_use(uri)
        with pytest.raises(ValueError, match="It"):
            redirect_host(uri)


def test_an_answer_is_added_to_what_is_there() -> None:
    answer = {"code": "a b", "state": "&=#é+\"'<>", "iss": "https://a.example"}
    tail = "code=a%20b&state=%26%3D%23%C3%A9%2B%22%27%3C%3E&iss=https%3A%2F%2Fa.example"
    for redirect, start in [
        ("https://a.example", "https://a.example?"),
        ("https://a.example/b", "https://a.example/b?"),
        ("https://a.example/b?", "https://a.example/b?"),
        ("https://a.example/b?c=%20d", "https://a.example/b?c=%20d&"),
        ("com.example.app:/b", "com.example.app:/b?"),
    ]:
        assert with_answer(redirect, answer) == start + tail


def test_an_answer_is_heard_as_it_was_meant() -> None:
    answer = {"code": "a b+c", "state": "&=#?;%é\"'<>\n\\/", "iss": "https://a.example"}
    for redirect in ALLOWED:
        link = with_answer(redirect, answer)
        assert link.startswith(redirect)
        assert urlsplit(link).hostname == urlsplit(redirect).hostname
        assert parse_qsl(urlsplit(link).query)[-3:] == list(answer.items())
