"""Tests of `mcp_app/protocol/oauth/addresses.py`."""

from __future__ import annotations

import re
from itertools import product
from urllib.parse import parse_qsl, urlsplit

import pytest

from mcp_app.protocol.oauth.addresses import (
    DEFAULT_PORTS,
    FORBIDDEN_SCHEMES,
    WebUrl,
    canonical,
    is_loopback,
    is_private_use,
    is_same_redirect,
    read_web_url,
    redirect_host,
    redirect_problem,
    scheme_problem,
    with_answer,
)

URLS = [
    ("https://a.example", WebUrl("https", "a.example", None, "", None)),
    ("https://a.example/", WebUrl("https", "a.example", None, "/", None)),
    ("HTTPS://A.Example/B", WebUrl("https", "a.example", None, "/B", None)),
    ("https://a.example:443/b", WebUrl("https", "a.example", None, "/b", None)),
    ("https://a.example:80", WebUrl("https", "a.example", 80, "", None)),
    ("http://a.example:80", WebUrl("http", "a.example", None, "", None)),
    ("https://a.example:65535?", WebUrl("https", "a.example", 65_535, "", "")),
    ("https://a?b=c?d/e", WebUrl("https", "a", None, "", "b=c?d/e")),
    ("https://a/%2e%2E/b;c?d", WebUrl("https", "a", None, "/%2e%2E/b;c", "d")),
    ("https://a/b@c:d//e", WebUrl("https", "a", None, "/b@c:d//e", None)),
    (
        "https://xn--bcher-kva.example",
        WebUrl("https", "xn--bcher-kva.example", None, "", None),
    ),
    ("https://a_b-.example", WebUrl("https", "a_b-.example", None, "", None)),
    ("https://1.2.3.4:8/", WebUrl("https", "1.2.3.4", 8, "/", None)),
    ("https://1.2.3.4.example", WebUrl("https", "1.2.3.4.example", None, "", None)),
    ("https://[::1]:99/", WebUrl("https", "[::1]", 99, "/", None)),
    ("https://[2001:DB8:0:0::1]", WebUrl("https", "[2001:db8::1]", None, "", None)),
]
NO_URLS = {
    "no absolute URL": [
        *("", "a", "//a.example", "/a", "https:", "https:a.example"),
        *("https:/a.example", "https:a@b", "ftp://a.example", "xhttps://a.example"),
        "http+s://a.example",
    ],
    "characters": [
        *("http\u017f://a.example", "https://a.example\\@b.example"),
        *("https://a.example\\.b.example", "https:\\\\a.example", "https:/\\a.example"),
        *("https://a.example/\t", "ht\ttps://a.example", "https://a.exa\nmple"),
        *("https://a.example\r\n", "https://a.example\n", " https://a.example"),
        *("https://a.example ", "https://a b", "https://a.example/\0"),
        *("https://bücher.example", "https://a。example", "https://a.example/é"),
        *("https://a.example/%", "https://a.example/%4", "https://a.example/%zz"),
        *('https://a.example/"', "https://a.example/<b>", "https://a.example/{b}"),
        *("https://a.example/|", "https://a.example/^", "https://a.example/`"),
    ],
    "host": [
        *("https://", "https:///a.example", "https:////a.example", "https://?a"),
        *("https://:443/", "https://.", "https://.a.example", "https://a.example."),
        *("https://a..example", "https://a.example:", "https://a.example:0"),
        *("https://a.example:0443", "https://a.example:65536"),
        *("https://a.example:100000", "https://a.example:4x", "https://a.example:+44"),
        *("https://a.example:44:44", "https://a,b", "https://a&b.example"),
        *("https://a;b.example", "https://a$b", "https://a~b", "https://%61.example"),
        *("https://a%2Eexample", "https://a.example%00.b.example"),
        *("https://a.example%E3%80%82b.example", "https://[::1", "https://::1"),
        *("https://[]", "https://[::1]a", "https://[::1]:x", "https://[v1.a]"),
        *("https://[::1%251]", "https://[::1].example"),
    ],
    "user part": [
        *("https://a.example%2F@b.example", "https://a@b.example"),
        *("https://@b.example", "https://a.example:443@b.example"),
        "https://a:b@c.example",
    ],
    "IPv4": [
        *("https://2130706433", "https://127.1", "https://127.0.0.1.2"),
        *("https://0x7f000001", "https://0x7f.0.0.1", "https://0X7F.0X0"),
        *("https://a.0x", "https://a.example.7", "https://0177.0.0.1"),
        *("https://127.0.0.01", "https://127.0.0.256"),
    ],
    "IPv6": ["https://[1::2::3]", "https://[127.0.0.1]"],
    "fragment": ["https://a.example#", "https://a.example#@b.example"],
    "brackets": ["https://a.example/[b]", "https://a.example?b[]=c"],
}


def test_what_is_read() -> None:
    for text, url in URLS:
        assert read_web_url(text) == url, text


def test_what_is_refused() -> None:
    for reason, texts in NO_URLS.items():
        for text in texts:
            with pytest.raises(ValueError, match=reason):
                read_web_url(text)


PIECES = (
    "https: : / // \\ @ ? # %2f %40 [::1] [ ] a.example b.example 127.0.0.1 0x7f 1 ."
    " :80 :443 :0 é 。 ; & localhost - _ % + ="
)


def test_what_is_read_is_what_others_read() -> None:
    """Python's own reader is another one: both find the same parts."""
    pieces = [*PIECES.split(), *"\t\n\0 "]
    starts = ["https://", "https://a.example", "https://[::1]", "http:"]
    for parts in product(starts, pieces, ["", "/", *pieces], ["", "/b", "?c"]):
        text = "".join(parts)
        try:
            url = read_web_url(text)
        except ValueError:
            continue
        other = urlsplit(text)
        assert other.hostname == url.host.strip("[]"), text
        assert other.port in {url.port, DEFAULT_PORTS[url.scheme]}, text
        assert (other.path, other.query) == (url.path, url.query or ""), text
        assert (other.username, other.fragment) == (None, ""), text


# -- redirects -------------------------------------------------------------------------


SCHEMES = ["cursor", "com.example.App"]
ALLOWED = [
    "https://claude.ai/api/mcp/auth_callback",
    "https://chatgpt.com/connector_platform_oauth_redirect",
    *("https://vscode.dev/redirect", "https://a.example"),
    *("https://a.example:8443/b?c=d", "https://a.example/b?coder=1&states=2&x=code"),
    *("https://1.2.3.4/b", "https://[2001:db8::1]/b", "https://localhost/b"),
    *("http://127.0.0.1:33418/", "http://127.0.0.1", "http://[::1]:8/b"),
    *("http://localhost:8787/callback", "HTTP://LOCALHOST/b"),
    *("cursor://anysphere.cursor-mcp/oauth/callback", "CURSOR://a/b", "cursor:a"),
    *("cursor://a.b:1?c=d@e:f", "com.example.app:/oauth2redirect?a=b"),
    "https://a.example/" + "b" * 482,
]
REFUSED: dict[str, list[object]] = {
    "no text": [None, 5, b"https://a.example", ["https://a.example"], ""],
    "500 characters": ["https://a.example/" + "b" * 483],
    "scheme": [
        *("a.example/b", "//a.example/b", "/b", "*", "vscode://a/b", "com.example:/b"),
        *("javascript:alert(1)", "JavaScript://a.example/%0aalert(1)"),
        *("data:text/html,a", "file:///etc/passwd", "blob:https://a.example/b"),
        "urn:ietf:wg:oauth:2.0:oob",
    ],
    "host": [
        *("https://*.example/b", "https:///b", "https://a.example./b"),
        *("http://localhost./", "http://localhost:0/", "http://localhost:/"),
        *("http://localhost%2eevil.example/", "http://[::1]:x/"),
        *("http://[::1]evil.example/", "cursor:", "cursor://", "cursor:///b"),
        *("cursor://?b", "cursor:?a", "cursor://a@b/c", "cursor://:80/a"),
        *("cursor://a:b/c", "cursor://[a]/b"),
    ],
    "absolute": ["https:a.example", "https:/a.example"],
    "user part": ["https://a@b.example", "http://localhost:80@evil.example/"],
    "characters": [
        *("https://a.example\\@b.example/", "https://a.example/\tb"),
        *(" https://a.example/", "https://a.example/ b", "cursor://a\\b"),
        *("java\tscript:alert(1)", " javascript:alert(1)"),
    ],
    "fragment": ["https://a.example/b#", "https://a.example/b#c", "cursor://a/b#c"],
    "http is allowed on": [
        *("http://a.example/b", "http://127.0.0.1.evil.example/"),
        *("http://localhost.evil.example/", "http://evil.localhost/"),
        *("http://127.0.0.2/", "http://0.0.0.0/", "http://[::]/"),
        "http://[::ffff:127.0.0.1]/",
    ],
    "IPv4": ["http://2130706433/", "http://127.1/"],
    "code": [
        *("https://a.example/?code=1", "https://a.example/?c%6Fde=1"),
        *("https://a.example/?a=b;code=1", "https://a.example/?a=b?code=1"),
        "https://a.example/?+code%5B0%5D=1",
    ],
    "state": [
        *("https://a.example/?b=c&state", "https://a.example/?%20st%61te%20="),
        "cursor://a/b?state=1",
    ],
    "iss": ["https://a.example/?iss="],
    "error": ["https://a.example/?error=a"],
    "error_description": ["https://a.example/?error_description=a"],
    "CODE": ["https://a.example/?CODE=1"],
    "brackets": ["cursor:[a]"],
}


def test_where_an_answer_may_be_sent() -> None:
    for uri in ALLOWED:
        assert redirect_problem(uri, SCHEMES) is None, uri


def test_where_none_may_be_sent() -> None:
    for reason, uris in REFUSED.items():
        for uri in uris:
            assert reason in (redirect_problem(uri, SCHEMES) or ""), uri


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
ANOTHER = {
    "https://a.example/b": [
        *("https://a.example/b/", "https://a.example/B", "https://A.example/b"),
        *("HTTPS://a.example/b", "https://a.example:443/b", "https://a.example/b?c"),
        *("https://a.example/b?", "https://a.example/b#", "https://a.example/./b"),
        *("https://a.example/%62", "https://a.example/b/../c"),
        *("https://a.example.evil.example/b", "https://a.example@evil.example/b"),
        *("http://a.example/b", ""),
    ],
    "https://a.example:1/b": ["https://a.example:2/b"],
    "http://localhost/b": [
        *("http://127.0.0.1/b", "http://[::1]/b", "https://localhost/b"),
        *("http://LOCALHOST/b", "http://localhost:9/c", "http://localhost:9/b?c"),
        *("http://localhost:0/b", "http://localhost:/b", "http://localhost:65536/b"),
        *("http://localhost:9\\b", "http://localhost:9@evil.example/b"),
        *("http://localhost.evil.example:9/b", "http://localhost:9.evil.example/b"),
        "http://localhost:9/b#",
    ],
    "http://localhost/b:7": ["http://localhost:9/b:8"],
    "http://[::1]/b": ["http://[::1]:9]/b", "http://[0::1]:9/b"],
    "http://localhost?a=//b:7": ["http://localhost?a=//b:8"],
    "cursor://a:1/b": ["cursor://a:2/b"],
    "cursor://localhost:1/b": ["cursor://localhost:2/b"],
}


def test_the_same_redirect() -> None:
    for registered, asked in SAME:
        assert is_same_redirect(registered, asked), asked


def test_another_redirect() -> None:
    for registered, others in ANOTHER.items():
        for asked in others:
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


# -- resources -------------------------------------------------------------------------


FORMS = [
    ("https://a.example/mcp", "https://a.example/mcp"),
    ("https://a.example/mcp/", "https://a.example/mcp"),
    ("https://a.example/mcp/sse", "https://a.example/mcp"),
    ("https://a.example/mcp/sse/", "https://a.example/mcp"),
    ("HTTPS://A.EXAMPLE:443/mcp", "https://a.example/mcp"),
    ("http://a.example:80/mcp", "http://a.example/mcp"),
    ("http://127.0.0.1:8000/mcp/b/", "http://127.0.0.1:8000/mcp/b"),
    ("https://[0:0::1]/mcp", "https://[::1]/mcp"),
    ("https://a.example", "https://a.example"),
    ("https://a.example/", "https://a.example"),
    ("https://a.example/sse", "https://a.example"),
    # What is another address stays one.
    ("https://a.example/MCP", "https://a.example/MCP"),
    ("https://a.example/mcp//", "https://a.example/mcp/"),
    ("https://a.example/mcp/sse//", "https://a.example/mcp/sse/"),
    ("https://a.example/mcp/sse/sse", "https://a.example/mcp/sse"),
    ("https://a.example/mcpsse", "https://a.example/mcpsse"),
    ("https://a.example/mcp/SSE", "https://a.example/mcp/SSE"),
    ("https://a.example/%6dcp", "https://a.example/%6dcp"),
    ("https://a.example/b/../mcp", "https://a.example/b/../mcp"),
    ("https://a.example:8443/mcp", "https://a.example:8443/mcp"),
    ("https://a.example:80/mcp", "https://a.example:80/mcp"),
    ("http://a.example/mcp", "http://a.example/mcp"),
]
NO_RESOURCES = {
    "no absolute": [
        *("", "mcp", "/mcp", "a.example/mcp", "urn:a:b", "https:/a.example/mcp")
    ],
    "host": ["https:///mcp", "https://a.example./mcp", "https://a.example:0/mcp"],
    "fragment": ["https://a.example/mcp#"],
    "query": ["https://a.example/mcp?", "https://a.example/mcp?a=b"],
    "user part": ["https://b@a.example/mcp"],
    "characters": [
        *("https://a.example\\mcp", "https://a.example/mcp\n", "https://ä.example/mcp")
    ],
    "2000 characters": ["https://a.example/" + "b" * 1_983],
}


def test_the_canonical_form() -> None:
    for resource, form in FORMS:
        assert canonical(resource) == form, resource


def test_what_is_no_resource() -> None:
    for reason, resources in NO_RESOURCES.items():
        for resource in resources:
            with pytest.raises(ValueError, match=reason):
                canonical(resource)
    assert len(canonical("https://a.example/" + "b" * 1_982)) == 2_000
