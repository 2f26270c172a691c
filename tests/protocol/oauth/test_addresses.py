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
    check_characters,
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
NO_URLS = [
    ("", "no absolute URL"),
    ("a", "no absolute URL"),
    ("//a.example", "no absolute URL"),
    ("/a", "no absolute URL"),
    ("https:", "no absolute URL"),
    ("https:a.example", "no absolute URL"),
    ("https:/a.example", "no absolute URL"),
    ("https:a@b", "no absolute URL"),
    ("ftp://a.example", "no absolute URL"),
    ("xhttps://a.example", "no absolute URL"),
    ("http+s://a.example", "no absolute URL"),
    ("http\u017f://a.example", "characters"),
    ("https://", "host"),
    ("https:///a.example", "host"),
    ("https:////a.example", "host"),
    ("https://?a", "host"),
    ("https://:443/", "host"),
    ("https://.", "host"),
    ("https://.a.example", "host"),
    ("https://a.example.", "host"),
    ("https://a..example", "host"),
    ("https://a.example:", "host"),
    ("https://a.example:0", "host"),
    ("https://a.example:0443", "host"),
    ("https://a.example:65536", "host"),
    ("https://a.example:100000", "host"),
    ("https://a.example:4x", "host"),
    ("https://a.example:+44", "host"),
    ("https://a.example:44:44", "host"),
    ("https://a,b", "host"),
    ("https://a&b.example", "host"),
    ("https://a;b.example", "host"),
    ("https://a$b", "host"),
    ("https://a~b", "host"),
    ("https://%61.example", "host"),
    ("https://a%2Eexample", "host"),
    ("https://a.example%2F@b.example", "user part"),
    ("https://a.example%00.b.example", "host"),
    ("https://a.example%E3%80%82b.example", "host"),
    ("https://2130706433", "IPv4"),
    ("https://127.1", "IPv4"),
    ("https://127.0.0.1.2", "IPv4"),
    ("https://0x7f000001", "IPv4"),
    ("https://0x7f.0.0.1", "IPv4"),
    ("https://0X7F.0X0", "IPv4"),
    ("https://a.0x", "IPv4"),
    ("https://a.example.7", "IPv4"),
    ("https://0177.0.0.1", "IPv4"),
    ("https://127.0.0.01", "IPv4"),
    ("https://127.0.0.256", "IPv4"),
    ("https://[::1", "host"),
    ("https://::1", "host"),
    ("https://[]", "host"),
    ("https://[::1]a", "host"),
    ("https://[::1]:x", "host"),
    ("https://[v1.a]", "host"),
    ("https://[::1%251]", "host"),
    ("https://[1::2::3]", "IPv6"),
    ("https://[127.0.0.1]", "IPv6"),
    ("https://[::1].example", "host"),
    ("https://a@b.example", "user part"),
    ("https://@b.example", "user part"),
    ("https://a.example:443@b.example", "user part"),
    ("https://a:b@c.example", "user part"),
    ("https://a.example#", "fragment"),
    ("https://a.example#@b.example", "fragment"),
    ("https://a.example\\@b.example", "characters"),
    ("https://a.example\\.b.example", "characters"),
    ("https:\\\\a.example", "characters"),
    ("https:/\\a.example", "characters"),
    ("https://a.example/\t", "characters"),
    ("ht\ttps://a.example", "characters"),
    ("https://a.exa\nmple", "characters"),
    ("https://a.example\r\n", "characters"),
    ("https://a.example\n", "characters"),
    (" https://a.example", "characters"),
    ("https://a.example ", "characters"),
    ("https://a b", "characters"),
    ("https://a.example/\0", "characters"),
    ("https://bücher.example", "characters"),
    ("https://a。example", "characters"),
    ("https://a.example/é", "characters"),
    ("https://a.example/%", "characters"),
    ("https://a.example/%4", "characters"),
    ("https://a.example/%zz", "characters"),
    ('https://a.example/"', "characters"),
    ("https://a.example/<b>", "characters"),
    ("https://a.example/{b}", "characters"),
    ("https://a.example/|", "characters"),
    ("https://a.example/^", "characters"),
    ("https://a.example/`", "characters"),
    ("https://a.example/[b]", "brackets"),
    ("https://a.example?b[]=c", "brackets"),
]


def test_what_is_read() -> None:
    for text, url in URLS:
        assert read_web_url(text) == url, text


def test_what_is_refused() -> None:
    for text, reason in NO_URLS:
        with pytest.raises(ValueError, match=reason):
            read_web_url(text)


def test_an_authority_has_a_port_that_is_not_the_own_one() -> None:
    assert read_web_url("https://A.example:443/").authority == "a.example"
    assert read_web_url("http://A.example:443/").authority == "a.example:443"
    assert read_web_url("https://[::1]:80").authority == "[::1]:80"


def test_characters_of_any_scheme() -> None:
    for text in ("a:b", "com.example:/c?d=e", "a://b/c", "a://[::1]/c", ""):
        check_characters(text)
    for text in ("a:b#", "a:[b]", "a://b/[c]", "a:b c", "a:é", "a:%4", "a:\\b"):
        with pytest.raises(ValueError, match="It has"):
            check_characters(text)


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
NO_RESOURCES = [
    ("", "no absolute"),
    ("mcp", "no absolute"),
    ("/mcp", "no absolute"),
    ("a.example/mcp", "no absolute"),
    ("urn:a:b", "no absolute"),
    ("https:/a.example/mcp", "no absolute"),
    ("https:///mcp", "host"),
    ("https://a.example./mcp", "host"),
    ("https://a.example:0/mcp", "host"),
    ("https://a.example/mcp#", "fragment"),
    ("https://a.example/mcp?", "query"),
    ("https://a.example/mcp?a=b", "query"),
    ("https://b@a.example/mcp", "user part"),
    ("https://a.example\\mcp", "characters"),
    ("https://a.example/mcp\n", "characters"),
    ("https://ä.example/mcp", "characters"),
    ("https://a.example/" + "b" * 1_983, "2000 characters"),
]


def test_the_canonical_form() -> None:
    for resource, form in FORMS:
        assert canonical(resource) == form, resource


def test_what_is_no_resource() -> None:
    for resource, reason in NO_RESOURCES:
        with pytest.raises(ValueError, match=reason):
            canonical(resource)
    assert len(canonical("https://a.example/" + "b" * 1_982)) == 2_000
