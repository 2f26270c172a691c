"""Requests in Django's form for authenticators, client addresses, and challenges."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final, TypeAlias

from django.contrib.auth import get_user_model
from django.core.handlers.asgi import ASGIRequest

from mcp_app.interface.principal import (
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)
from mcp_app.models.tokens import Network
from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.oauth.requests import CHANGE, READ

# -- addresses -------------------------------------------------------------------------
# The address of the client, also if proxies stand in front of the site.
#
# `MCP["TRUSTED_PROXIES"]` is the number of proxies, or their networks.  What others
# write into `X-Forwarded-For` is ignored.

Address: TypeAlias = IPv4Address | IPv6Address

logger = logging.getLogger("mcp_app.auth")

MAX_HOPS_LENGTH = 1_024
"""How many characters are read from the end of `X-Forwarded-For`."""
PREFIX_V6 = 64
"""Bits of an IPv6 network that one subscriber has."""


class CallerAddresses:
    """The addresses of anonymous callers, as keys for limits; used on the loop only.

    An address counts only if it is reliable.  Behind a proxy that the settings do not
    name, all callers would have the address of the proxy.
    """

    def __init__(self, trusted: int | Sequence[str]) -> None:
        """`trusted` is the setting `TRUSTED_PROXIES`."""
        self._trusted = trusted
        self._is_logged = False
        self._cached = lru_cache(maxsize=4096)(self._uncached_key)
        self.direct: Callable[[str], str] = self._cached
        """`address_key` for a request that no proxy has forwarded."""

    def address_key(self, peer: str, forwarded: str | None) -> str:
        """Return the key of an address, "" if the address is not reliable.

        `peer` and `forwarded` are those of `client_address`.
        """
        if forwarded is not None:
            # Clients can write anything in front of what the proxies add.
            forwarded = forwarded.rstrip()[-MAX_HOPS_LENGTH:] if self._trusted else ""
        return self._cached(peer, forwarded)

    def _uncached_key(self, peer: str, forwarded: str | None = None) -> str:
        if self._trusted:
            address = client_address(peer, forwarded, self._trusted)
        else:
            address = _parse_hop(peer) if forwarded is None else None
            if (forwarded is not None or not peer) and not self._is_logged:
                self._is_logged = True
                logger.warning(
                    "Anonymous callers share one rate, because their addresses are not"
                    ' known. Behind a proxy, set MCP["TRUSTED_PROXIES"].'
                )
            if address is None or address.is_loopback:
                return ""
        if address is None:
            return ""
        if isinstance(address, IPv6Address):
            return f"@{ip_network((address, PREFIX_V6), strict=False)}"
        return f"@{address}"


def client_address(
    peer: str, forwarded: str | None, trusted: int | Sequence[str]
) -> Address | None:
    """Return the client's address; None if it is not known.

    `peer` is the address of the connection ("" for a Unix socket), `forwarded` is
    `X-Forwarded-For`: each proxy appends the address of its sender.
    """
    passed = [each for each in (forwarded or "").split(",") if each.strip()]
    hops = [_parse_hop(each) for each in (peer, *reversed(passed))]
    if isinstance(trusted, int):
        # The first hops are the addresses of that many proxies.
        return hops[trusted] if 0 <= trusted < len(hops) else None
    networks = _parse_networks(tuple(trusted))
    # A Unix socket has no address; at its other end is a proxy of this machine.
    for hop in hops[1:] if not peer else hops:
        if hop is None or not is_in_networks(hop, networks):
            return hop
    return None


def is_in_networks(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks."""
    return any(address in network for network in networks)


@lru_cache(maxsize=16)
def _parse_networks(written: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(map(ip_network, written))


def _parse_hop(text: str) -> Address | None:
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


# -- site requests ---------------------------------------------------------------------

_OF_THE_BODY: Final = frozenset(
    {b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"}
)


def site_request(request: AuthenticationRequest, method: str = "") -> ASGIRequest:
    """Return Django's form of a request, without body and query (no credentials).

    `method` replaces the request's own method.
    """
    pairs = request.headers.raw.items()
    return ASGIRequest(
        {
            "type": "http",
            "method": method or request.method,
            "scheme": request.scheme,
            "path": request.path,
            "headers": [pair for pair in pairs if pair[0] not in _OF_THE_BODY],
            "client": (request.peer, 0) if request.peer else None,
        },
        BytesIO(),
    )


def principal_of_user(user: Any, *, kind: str, client: str) -> Principal:
    """Return the principal of a user of the site, who must be active.

    Raises TypeError for a row of another table, because its primary key may be that of
    a user.
    """
    if not isinstance(user, get_user_model()) or user.pk is None:
        raise TypeError(
            f"{client} authenticated a {type(user).__qualname__}, which is not an"
            " instance of AUTH_USER_MODEL."
        )
    if not user.is_active:
        raise AuthenticationFailed("The user may not log in.")
    name = user.get_username()
    return Principal(kind=kind, user_id=str(user.pk), user_name=name, client=client)


# -- challenge -------------------------------------------------------------------------
# The one place that asks for credentials: 401, and where a client gets them.
#
# The metadata (RFC 9728) names the issuers of tokens for the requested address.  If the
# credentials allow nothing here, the answer is 403.

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
SCOPES = f"{READ} {CHANGE}"
TOO_LITTLE = "insufficient_scope"
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""The characters that a description may have (RFC 6750, section 3)."""


def unauthenticated_refusal(
    message: str, error: str = "", *, metadata: str = ""
) -> RequestRefused:
    """Return a 401 with its challenge; `error` is a code of RFC 6750, section 3.1.

    Without credentials, `error` is "" (section 3).  `metadata` is the URL of the
    resource's metadata, "" if no issuer has tokens for it.
    """
    challenge = CHALLENGE
    if metadata:
        challenge = f'{challenge}, resource_metadata="{metadata}", scope="{SCOPES}"'
    if error:
        challenge = f'{challenge}, error="{error}"'
        if _DESCRIPTION.fullmatch(message):
            challenge = f'{challenge}, error_description="{message}"'
    return RequestRefused(401, message, {"WWW-Authenticate": challenge})


def insufficient_scope(message: str, scope: str, metadata: str = "") -> RequestRefused:
    """Return a 403 with its challenge (RFC 6750, section 3.1).

    `scope` is the scope that a token needs, `metadata` the address of the server's
    metadata (RFC 9728, section 5.1), "" for none.
    """
    challenge = scope_challenge(scope, metadata)
    return RequestRefused(403, message, {"WWW-Authenticate": challenge})


def scope_challenge(scope: str, metadata: str) -> str:
    """Return the challenge of a 403, for the parameters of `insufficient_scope`."""
    challenge = f'{CHALLENGE}, error="{TOO_LITTLE}", scope="{scope}"'
    return f'{challenge}, resource_metadata="{metadata}"' if metadata else challenge
