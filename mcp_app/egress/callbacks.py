"""Posts to the receivers of webhooks, whose addresses clients choose.

`MCP["EVENTS"]` says which receivers are trusted, and which process delivers:

    MCP = {"EVENTS": {"receivers": ["https://hooks.example.com/"], "deliver": "worker"}}

If one option is wrong, a check says so, and the defaults are used until it is mended.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from ipaddress import ip_network
from typing import Annotated, Final, Literal
from urllib.parse import unquote

from django.conf import settings
from pydantic import AfterValidator, Field

from mcp_app.conf import KIB, mcp_settings, settings_cache
from mcp_app.egress.client import connections
from mcp_app.egress.documents import ANONYMOUS_REQUEST, is_on_loopback
from mcp_app.egress.requests import BLOT, Secrets, SiteRequest, target_of
from mcp_app.egress.resolving import EgressError, Forbidden, TooSlow, Unreachable
from mcp_app.egress.sites import (
    PORTS,
    Options,
    Site,
    UnusableSite,
    address_of,
    option_problems,
)
from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc, webhooks
from mcp_app.protocol.json_types import JsonObject

TIMEOUT_S: Final = 10.0
MAX_ANSWER: Final = 8 * KIB
MAX_CONNECTIONS: Final = 4
"""How many posts to one host run at the same time."""
MAX_SITES: Final = 256
MAX_LINE: Final = 200
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1"))
"""Addresses that need no TLS while `DEBUG` is on, so that developers can try it."""


# -- settings --------------------------------------------------------------------------


def _read_receiver(text: str) -> str:
    authority, slash, path = text.removeprefix("https://").partition("/")
    if not text.startswith("https://") or not slash or not authority:
        # Without the slash, the names of other hosts could begin with this text.
        raise ValueError('it must be such as "https://hooks.example.com/"')
    return f"https://{authority.lower().removesuffix(':443')}/{path}"


class EventSettings(Options):
    """The options; addresses that begin as one of `receivers` need no verification."""

    receivers: Annotated[
        list[Annotated[str, AfterValidator(_read_receiver)]], Field(strict=False)
    ] = []
    deliver: Literal["here", "worker"] = "here"


@settings_cache
def event_settings() -> EventSettings:
    """Return the options of the settings, or the defaults if anything is wrong."""
    wrong = any(event_problems(mcp_settings.events))
    return EventSettings() if wrong else EventSettings(**mcp_settings.events)


def event_problems(options: object) -> Iterator[str]:
    """Yield a sentence for each option that cannot be used."""
    return option_problems("EVENTS", EventSettings, options)


# -- addresses -------------------------------------------------------------------------


class UnusableCallback(ValueError):
    """An address that may not be posted to; the message says why."""


@dataclass(frozen=True, slots=True)
class Callback:
    """The address of a subscriber; its repr has no path, which may hold a secret.

    A `trusted` address needs no verification.
    """

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    query: str = field(repr=False)
    trusted: bool


def read_callback(url: str) -> Callback:
    """Return the parts of an address; raise `UnusableCallback`."""
    # An address may hold a secret anywhere, so no message repeats it.
    address, _mark, query = url.partition("?")
    if len(url) > webhooks.MAX_URL_LENGTH:
        raise UnusableCallback(
            f"has {len(url):,} characters: at most {webhooks.MAX_URL_LENGTH:,} are"
            " allowed."
        )
    options = event_settings()
    try:
        is_local = settings.DEBUG and url.startswith("http://")
        if not (is_local or url.startswith("https://")):
            raise UnusableSite
        parts = address_of(address, private=is_local or bool(options.networks))
        if is_local and not is_on_loopback(parts["host"]):
            raise UnusableSite
        site = _site_of(parts["scheme"], parts["host"], parts["port"], options)
        path = parts["prefix"] + ("/" if address.endswith("/") else "") or "/"
        request = SiteRequest(method="POST", path=path, query=query)
        target_of(site, request, Secrets({}, {}))
    except (UnusableSite, Forbidden):
        raise UnusableCallback(
            "must be https:// with the name of a host on the public web, a path and"
            " perhaps a query; without a user and a fragment, with the port 443, and"
            " with all other characters encoded. While DEBUG is on, it may also be"
            " http:// with 127.0.0.1 or localhost, and any port."
        ) from None
    trusted = any(f"{site.url}{path}".startswith(each) for each in options.receivers)
    is_own_host = is_local or (bool(options.networks) and is_on_loopback(site.host))
    if site.port != PORTS["https"] and not trusted and not is_own_host:
        raise UnusableCallback("must have the port 443.")
    return Callback(site.scheme, site.host, site.port, path, query, trusted)


# -- posts -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAnswer:
    """The result of a post; `error` is what subscribers read of it, "" for success.

    `status` is 0 if there is no answer.  The body is only compared with a challenge.
    Staff can read its `first_line`; subscribers see nothing of it.
    """

    error: str
    status: int = 0
    body: bytes = field(default=b"", repr=False)

    def first_line(self, url: str, data: JsonObject) -> str:
        """Return the first line, without words of the address or of the message."""
        # Receivers repeat these words, and they may be secret.
        text = unescape(self.body.decode(errors="replace"))
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
        lines = text.strip().splitlines()
        posted = f"{url} {unquote(url)} {jsonrpc.write(data).decode()}".casefold()
        # Account numbers are written with blanks or without.
        posted += re.sub(r"[\W_]", "", posted)
        # With a group, `split` puts the words it finds at the odd indexes.
        parts = re.split(r"([^\W_]{4,})", "".join(lines[:1])[:MAX_LINE])
        words = [BLOT if part.casefold() in posted else part for part in parts[1::2]]
        parts[1::2] = words
        return visible("".join(parts), MAX_LINE - 1)


class Callbacks:
    """The receivers that a process posts to; used on its loop only."""

    def __init__(self) -> None:
        self._sites: OrderedDict[tuple[str, str, int], Site] = OrderedDict()

    async def post_message(
        self, callback: Callback, headers: Sequence[tuple[str, str]], body: bytes
    ) -> CallbackAnswer:
        """Post a body, and return the result; it takes 10 s at most."""
        request = SiteRequest(
            method="POST",
            path=callback.path,
            query=callback.query,
            headers=headers,
            body=body,
            log_path="/…",
        )
        site = await self._find_site(callback)
        try:
            answer = await connections().call_site(
                site, request, ANONYMOUS_REQUEST, is_delivery=True
            )
        except EgressError as error:
            if error.status:
                # There was an answer, but it cannot be read.
                category = webhooks.category_of(error.status)
                return CallbackAnswer(error=category, status=error.status)
            return CallbackAnswer(error=_category_of(error))
        category = webhooks.category_of(answer.status)
        return CallbackAnswer(error=category, status=answer.status, body=answer.body)

    async def _find_site(self, callback: Callback) -> Site:
        key = callback.scheme, callback.host, callback.port
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _site_of(*key, event_settings())
        self._sites.move_to_end(key)
        if len(self._sites) > MAX_SITES:
            _, unused = self._sites.popitem(last=False)
            await connections().forget_site(unused)
        return site


def _category_of(error: EgressError) -> str:
    if isinstance(error, TooSlow):
        return webhooks.TIMEOUT
    if isinstance(error, Unreachable) and error.why:
        return webhooks.TLS_ERROR if error.why == "tls" else webhooks.TIMEOUT
    return webhooks.REFUSED


def _site_of(scheme: str, host: str, port: int, options: EventSettings) -> Site:
    return Site(
        key=host,
        title=host,
        scheme=scheme,
        host=host,
        port=port,
        prefix="",
        networks=options.networks if scheme == "https" else LOOPBACK,
        ca=options.ca,
        timeout=TIMEOUT_S,
        connections=MAX_CONNECTIONS,
        answer=MAX_ANSWER,
    )
