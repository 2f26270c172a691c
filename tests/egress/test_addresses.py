"""Which addresses are public, and which a site's networks allow."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from mcp_app.egress.sites import is_allowed, is_public, read

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
    "1.1.1.1",
    "93.184.216.34",
    "100.63.255.255",
    "172.32.0.1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses(text: str) -> None:
    assert is_public(ip_address(text))


def test_networks_of_a_site() -> None:
    networks = [ip_network("10.2.0.0/16"), ip_network("fd00::/8")]
    assert is_allowed(ip_address("10.2.3.4"), networks)
    assert is_allowed(ip_address("fd00::1"), networks)
    assert is_allowed(ip_address("1.1.1.1"), networks)
    assert not is_allowed(ip_address("10.3.0.1"), networks)
    assert not is_allowed(ip_address("127.0.0.1"), networks)


@pytest.mark.parametrize("text", ["example.org", "127.1", "2130706433", "0x7f.1", ""])
def test_what_is_no_address(text: str) -> None:
    assert read(text) is None


def test_an_address_is_read() -> None:
    assert str(read("::1")) == "::1"
