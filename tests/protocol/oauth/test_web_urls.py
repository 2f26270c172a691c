"""A URL is read as browsers read it, or refused."""

from __future__ import annotations

from itertools import product
from urllib.parse import urlsplit

import pytest

from mcp_app.protocol.oauth.addresses import (
    DEFAULT_PORTS,
    WebUrl,
    check_characters,
    read_web_url,
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
