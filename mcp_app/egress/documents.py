"""Documents of other sites by URL: few bytes, a short time, and no redirects.

The sites of `MCP["HTTP"]` are in the settings, but a document's URL may come from
outside (threat T6 in `docs/security.md`).  It must be https and lead to a public
address or into networks of `Bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final

from mcp_app.conf import KIB
from mcp_app.egress.client import call_once
from mcp_app.egress.requests import SiteAnswer, SiteRequest
from mcp_app.egress.resolving import Forbidden, Lookup, Unreadable, system_lookup
from mcp_app.egress.sites import Network, Site, UnusableSite, address_of, parse_address
from mcp_app.interface.principal import AccessRequest, Principal

LOCALHOST: Final = "localhost"
ANONYMOUS_REQUEST: Final = AccessRequest(principal=Principal.ANONYMOUS, server="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits for a fetch.

    `networks` are the private networks that are allowed, `ca` is the path of a file
    with certificates, `timeout` is in seconds, `answer` in bytes after decompression.
    """

    networks: Sequence[Network] = ()
    ca: str = ""
    timeout: float = 5.0
    answer: int = 16 * KIB


async def fetch(
    url: str, bounds: Bounds, *, key: str, lookup: Lookup = system_lookup
) -> SiteAnswer:
    """Return the answer of a URL if its status is 200; raises `EgressError`.

    `key` is the name of the site in the log.
    """
    address, _mark, query = url.partition("?")
    try:
        parts = document_address(address, bounds.networks)
    except UnusableSite as error:
        raise Forbidden(f"{key} {error}") from None
    path = parts.pop("prefix") + ("/" if address.endswith("/") else "") or "/"
    options = {**parts, **asdict(bounds), "prefix": "", "connections": 1}
    site = Site(key=key, title=key, **options)
    request = SiteRequest(
        method="GET", path=path, query=query, idempotent=True, log_path=path
    )
    answer = await call_once(site, request, ANONYMOUS_REQUEST, lookup)
    if answer.status != HTTPStatus.OK:
        message = f"{site.authority} answered with the status {answer.status}."
        raise Unreadable(message, submitted=True)
    return answer


def document_address(
    url: object, networks: Sequence[Network], option: str = "url"
) -> dict[str, Any]:
    """Return scheme, host, port and path of a URL; raises `UnusableSite`.

    It must be https, except on loopback if `networks` has the address.  `option` is its
    name in the settings.
    """
    parts = address_of(url, private=bool(networks), option=option)
    if parts["scheme"] == "http" and not is_on_loopback(parts["host"]):
        raise UnusableSite(
            f'has as "{option}" an address with http://, which is for loopback alone.'
            " Write https://."
        )
    return parts


def is_on_loopback(host: str) -> bool:
    """Whether a host (a name or an address) is this computer."""
    address = parse_address(host)
    return host == LOCALHOST if address is None else address.is_loopback
