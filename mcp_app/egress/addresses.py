"""Which addresses a name may lead to: public ones, and those that a site allows.

The IPv4 list is IANA's special-purpose registry (RFC 6890), and the addresses of two
cloud providers' own services.  Of IPv6 only what is delegated as global unicast is
public, without the ranges that embed IPv4 addresses or serve documentation; addresses
of NAT64 (RFC 6052) count as the IPv4 address in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_SPECIAL: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
        ),
    )
)
_GLOBAL: Final = IPv6Network("2000::/3")
_SPECIAL_IN_GLOBAL: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether everybody on the Internet reaches the same host by this address."""
    if isinstance(address, IPv4Address):
        return not any(address in each for each in _SPECIAL)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.scope_id is not None or address not in _GLOBAL:
        return False
    return not any(address in each for each in _SPECIAL_IN_GLOBAL)


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Whether a site may be had at an address, given its private networks."""
    return is_public(address) or any(address in each for each in networks)


def read(text: str) -> Address | None:
    """Return the address that a text is, None if it is none."""
    try:
        return ip_address(text)
    except ValueError:
        return None
