"""From which address a request comes, where proxies stand in front of the site.

`MCP["TRUSTED_PROXIES"]` is how many there are, or in which networks they stand: what
others write into `X-Forwarded-For` says nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from mcp_app.models.tokens import Network

Address: TypeAlias = IPv4Address | IPv6Address


logger = logging.getLogger("mcp_app.auth")

LONGEST_HOPS = 1_024
"""Characters of `X-Forwarded-For`, from its end, in which the proxies stand."""
PREFIX_V6 = 64
"""Bits that are one subscriber's: whoever has an address has all of these."""


class CallerAddresses:
    """The addresses of anonymous callers, as keys for limits; used on the loop only.

    An address counts only if it is vouched for.  Behind a proxy that the settings do
    not name, all callers would have the proxy's.
    """

    def __init__(self, trusted: int | Sequence[str]) -> None:
        """`trusted` is the setting `TRUSTED_PROXIES`."""
        self._trusted = trusted
        self._is_logged = False
        self._cached = lru_cache(maxsize=4096)(self._key)
        self.direct: Callable[[str], str] = self._cached
        """Returns what `of` does for a request that no proxy has forwarded."""

    def of(self, peer: str, forwarded: str | None) -> str:
        """Return the key of an address, "" if it is not vouched for.

        `peer` and `forwarded` are those of `client_address`.
        """
        if forwarded is not None:
            # Others write what they like in front of what the proxies add.
            forwarded = forwarded.rstrip()[-LONGEST_HOPS:] if self._trusted else ""
        return self._cached(peer, forwarded)

    def _key(self, peer: str, forwarded: str | None = None) -> str:
        if self._trusted:
            address = client_address(peer, forwarded, self._trusted)
        else:
            address = _address(peer) if forwarded is None else None
            if forwarded is not None or not peer:
                self._log_unknown()
            if address is None or address.is_loopback:
                return ""
        if address is None:
            return ""
        if isinstance(address, IPv6Address):
            return f"@{ip_network((address, PREFIX_V6), strict=False)}"
        return f"@{address}"

    def _log_unknown(self) -> None:
        if self._is_logged:
            return
        self._is_logged = True
        logger.warning(
            "Anonymous callers share one rate, because their addresses are not known."
            ' Behind a proxy, set MCP["TRUSTED_PROXIES"].'
        )


def client_address(
    peer: str, forwarded: str | None, trusted: int | Sequence[str]
) -> Address | None:
    """Return the client's address; None where it is not known.

    `peer` is who has the connection ("" for a Unix socket), `forwarded` the value of
    `X-Forwarded-For`: each proxy adds at its end from whom it has the request.
    """
    passed = [each for each in (forwarded or "").split(",") if each.strip()]
    hops = [_address(each) for each in (peer, *reversed(passed))]
    if isinstance(trusted, int):
        return hops[trusted] if 0 <= trusted < len(hops) else None
    networks = _networks(tuple(trusted))
    # Who comes by a Unix socket has no address, and is on this machine: a proxy.
    for hop in hops[1:] if not peer else hops:
        if hop is None or not within(hop, networks):
            return hop
    return None


def within(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks."""
    return any(address in network for network in networks)


@lru_cache(maxsize=16)
def _networks(written: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(ip_network, written))


def _address(text: str) -> Address | None:
    """Read one hop: an address, perhaps with a port; IPv4 within IPv6 is IPv4."""
    host = text.strip().strip('"')
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
