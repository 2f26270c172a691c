"""Sites of the settings, and the sentences about those that cannot be used."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from mcp_app.conf import MIB
from mcp_app.egress import sites
from mcp_app.interface.principal import AccessRequest

SECRET = "canary-of-settings"
URL = "https://help.example.com/api/v2"


def own_headers(asked: AccessRequest) -> dict[str, str]:
    return {"X-User": asked.principal.user_name}


NO_FUNCTION = "text"


def test_a_site(settings: Settings, tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("")
    settings.MCP = {
        "HTTP": {
            "helpdesk": {
                "title": "Help desk",
                "url": "https://Help.example.com:8443/api/v2/",
                "secret_headers": {"X-Partner": SECRET},
                "secret_query": {"key": SECRET},
                "networks": ["10.2.0.0/16"],
                "ca": str(certificate),
                "timeout": 5,
                "connections": 3,
                "answer": 1000,
            },
            "rates": {"url": "https://rates.example"},
        }
    }
    site = sites.usable_sites()["helpdesk"]
    assert site.url == "https://help.example.com:8443/api/v2"
    assert site.authority == "help.example.com:8443"
    assert (site.title, site.timeout, site.connections) == ("Help desk", 5.0, 3)
    assert site.secret_names == {"x-partner"}
    assert not site.per_caller
    assert SECRET not in repr(site)
    plain = sites.usable_sites()["rates"]
    assert (plain.title, plain.port, plain.prefix) == ("rates", 443, "")
    assert (plain.timeout, plain.connections, plain.answer) == (30.0, 10, 4 * MIB)
    assert plain.url == "https://rates.example"


def test_headers_of_the_caller(settings: Settings) -> None:
    path = f"{__name__}.own_headers"
    settings.MCP = {"HTTP": {"peer": {"url": URL, "secret_headers": path}}}
    site = sites.usable_sites()["peer"]
    assert site.per_caller
    assert site.secret_names == frozenset()


def test_an_address_with_colons(settings: Settings) -> None:
    options = {"url": "http://[fd00::1]:81/x", "networks": ["fd00::/8"]}
    settings.MCP = {"HTTP": {"peer": options}}
    assert sites.usable_sites()["peer"].url == "http://[fd00::1]:81/x"
    assert sites.usable_sites()["peer"].host == "fd00::1"


NEEDS = 'needs "url", an address such as'
PRIVATE_ALONE = "which is for private networks alone"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, NEEDS),
        ({"url": 5}, NEEDS),
        ({"url": "ftp://example.com"}, NEEDS),
        ({"url": "//example.com"}, NEEDS),
        ({"url": "https://u:p@example.com"}, NEEDS),
        ({"url": "https://example.com?x=1"}, NEEDS),
        ({"url": "https://example.com/#x"}, NEEDS),
        ({"url": "https://ex\tample.com"}, NEEDS),
        ({"url": "https://example.com\n"}, NEEDS),
        ({"url": "https://ⓛocalhost.example"}, NEEDS),
        ({"url": "https://example.com\\@evil.example"}, NEEDS),
        ({"url": "https://example.com/a/../b"}, "is “.” or “..”"),
        ({"url": "https://example.com/a/%2e%2E/b"}, "is “.” or “..”"),
        ({"url": "https://example.com/a%2f..%2fb"}, "is “.” or “..”"),
        ({"url": "https://example.com/%252e%252e/x"}, "is “.” or “..”"),
        ({"url": "https://example.com/%5c..%5cx"}, "is “.” or “..”"),
        ({"url": "https://example.com/..;a/x"}, "is “.” or “..”"),
        ({"url": "https://example.com/a%0ab"}, "has a control character"),
        ({"url": "https://example.com:0"}, "the port 0"),
        ({"url": "https://example.com:65536"}, "the port 65536"),
        ({"url": "http://example.com"}, PRIVATE_ALONE),
        ({"url": "https://localhost"}, PRIVATE_ALONE),
        ({"url": "https://127.0.0.1"}, PRIVATE_ALONE),
        ({"url": "https://1.1.1.1"}, PRIVATE_ALONE),
        ({"url": "https://[::1]"}, PRIVATE_ALONE),
        ({"url": "https://2130706433"}, "four decimal numbers"),
        ({"url": "https://0x7f000001"}, "four decimal numbers"),
        ({"url": "https://0177.0.0.1"}, "four decimal numbers"),
        ({"url": "https://127.1"}, "four decimal numbers"),
        ({"url": "https://0"}, "four decimal numbers"),
        ({"url": "https://[::1.2]"}, "four decimal numbers"),
        (
            {"url": URL, "networks": "10.0.0.0/8"},
            "\"networks\" '10.0.0.0/8': Input should be a valid list",
        ),
        ({"url": URL, "networks": ["10.0.0.1/8"]}, "has host bits set"),
        ({"url": URL, "networks": ["here"]}, "does not appear to be an"),
        ({"url": URL, "networks": [5]}, "it must be a text"),
        ({"url": URL, "networks": [True]}, "it must be a text"),
        ({"url": URL, "networks": [b"abcd"]}, "it must be a text"),
        ({"url": URL, "networks": [("10.0.0.0", 8)]}, "it must be a text"),
        ({"url": URL, "secret_header": {}}, "Did you mean 'secret_headers'?"),
        ({"url": URL, "secret_headers": {"A": 5}}, "should be a valid string"),
        ({"url": URL, "secret_headers": [SECRET]}, "should be a valid dictionary"),
        ({"url": URL, "secret_query": SECRET}, "should be a valid dictionary"),
        ({"url": URL, "secret_headers": {"A": f"{SECRET}\r\nX: y"}}, "a line break"),
        ({"url": URL, "secret_headers": {"A b": SECRET}}, "is no name of a header"),
        ({"url": URL, "secret_headers": {"Host": SECRET}}, "belongs to the connection"),
        ({"url": URL, "secret_headers": "no.such"}, "cannot be imported"),
        ({"url": URL, "secret_headers": SECRET}, "nor the dotted path of a function"),
        ({"url": URL, "secret_headers": f"a.{SECRET}"}, "nor the dotted path"),
        ({"url": URL, "secret_headers": f"{__name__}.NO_FUNCTION"}, "is no function"),
        ({"url": URL, "ca": "/no/such/file"}, "it is not a file"),
        ({"url": URL, "title": ""}, "the \"title\" '': Value should have at least 1"),
        (
            {"url": URL, "timeout": 0},
            'has the "timeout" 0: Input should be greater than 0',
        ),
        ({"url": URL, "timeout": float("nan")}, "should be a finite number"),
        ({"url": URL, "timeout": 600.1}, "less than or equal to 600"),
        ({"url": URL, "connections": True}, "should be a valid integer"),
        ({"url": URL, "connections": 0.5}, "should be a valid integer"),
        ({"url": URL, "connections": 1001}, "less than or equal to 1000"),
        ({"url": URL, "answer": "1"}, "should be a valid integer"),
        ({"url": URL, "answer": 2**28 + 1}, "less than or equal to 268435456"),
        ({"url": URL, "answer": 0}, "greater than or equal to 1"),
        ({"url": URL, "answer": 1e3}, "should be a valid integer"),
        ("https://example.com", 'must be a dict with at least "url"'),
    ],
)
def test_what_cannot_be_used(settings: Settings, options: Any, sentence: str) -> None:
    given = {"peer": options, "other": {"url": URL}}
    (problem,) = sites.setting_problems(given)
    assert problem.startswith("MCP[\"HTTP\"]['peer'] ")
    assert sentence in problem
    assert SECRET not in problem
    settings.MCP = {"HTTP": given}
    assert [*sites.usable_sites()] == ["other"]


def test_networks_that_were_read(settings: Settings) -> None:
    network = ip_network("10.2.0.0/16")
    settings.MCP = {"HTTP": {"peer": {"url": URL, "networks": [network]}}}
    assert sites.usable_sites()["peer"].networks == [network]


@pytest.mark.parametrize("key", ["", "Help", "1a", "a b", "a" * 41, 5, None, b"a"])
def test_keys(key: Any) -> None:
    (problem,) = sites.setting_problems({key: {"url": URL}})
    assert "no row can name" in problem


@pytest.mark.parametrize("value", [" a", "a ", "a\r\nb", "a\x00", "ä", "\x7f"])
def test_headers_that_cannot_be_sent(value: str) -> None:
    problem = sites.header_problem("X-A", value)
    assert "X-A" in problem
    assert repr(value) not in problem


# -- addresses -------------------------------------------------------------------------


PRIVATE = [
    "0.0.0.0",  # noqa: S104
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::a9fe:a9fe",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:93.184.216.34",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a9fe:a9fe",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    *("1.1.1.1", "93.184.216.34", "100.63.255.255", "172.32.0.1", "2606:4700::1111"),
    *("2a00:1450:4001::1", "64:ff9b::101:101"),
]


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses(text: str) -> None:
    assert not sites.is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses(text: str) -> None:
    assert sites.is_public(ip_address(text))


@pytest.mark.parametrize("text", ["example.org", "127.1", "2130706433", "0x7f.1", ""])
def test_what_is_no_address(text: str) -> None:
    assert sites.parse_address(text) is None
