"""`MCP["OAUTH"]`: which programs may sign in, and how their documents are fetched.

    MCP = {"OAUTH": {"clients": ["claude.ai", "!evil.example"], "schemes": ["cursor"]}}

If one option is wrong, a check says so, and nobody can sign in until it is mended.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

from django.core.signals import setting_changed
from django.dispatch import receiver

from mcp_app.conf import mcp_settings
from mcp_app.egress.addresses import Network
from mcp_app.protocol.loopback import is_loopback_host
from mcp_app.protocol.oauth.redirects import scheme_problem

OUT: Final = "!"
"""In front of a host that is kept out."""
_PORT: Final = re.compile(r":[0-9]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """The options; `clients` are hosts, `schemes` those of private-use redirects."""

    clients: tuple[str, ...] = ()
    registration: bool = True
    documents: bool = True
    """Whether programs may name an address as their id, which is then fetched."""
    schemes: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    ca: str = ""

    def lets_in(self, hosts: Sequence[str]) -> bool:
        """Whether a client with these hosts may sign in.

        Those are the host of its document, or those of its redirects, with their ports.
        If hosts are named that are let in, each must be among them.
        """
        kept_out = {each[1:] for each in self.clients if each.startswith(OUT)}
        allowed = {each for each in self.clients if not each.startswith(OUT)}
        written = map(_host, hosts)
        named = [{host, _PORT.sub("", host)} for host in written]
        if any(names & kept_out for names in named):
            return False
        return not allowed or all(names & allowed for names in named)


def _host(text: str) -> str:
    """Return a host, as it may be written, in one way, with a port that is not usual.

    One name stands for a person's own computer.
    """
    host = text.lower()
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    name = _PORT.sub("", host)
    port = host[len(name) :].removesuffix(":443").removesuffix(":")
    name = name.removesuffix(".")
    return f"{'localhost' if is_loopback_host(name) else name}{port}"


def _entry(text: str) -> str:
    out = OUT if text.startswith(OUT) else ""
    return f"{out}{_host(text.removeprefix(OUT))}"


OPTIONS: Final = tuple(each.name for each in fields(OAuthSettings))


@cache
def oauth_settings() -> OAuthSettings:
    """Return the options in force; what is wrong is left at its default."""
    given = mcp_settings.oauth
    if any(problems(given)):
        return OAuthSettings()
    return OAuthSettings(
        clients=tuple(map(_entry, given.get("clients", ()))),
        registration=given.get("registration", True),
        documents=given.get("documents", True),
        schemes=tuple(each.lower() for each in given.get("schemes", ())),
        networks=tuple(map(ip_network, given.get("networks", ()))),
        ca=str(given.get("ca", "")),
    )


@cache
def is_usable() -> bool:
    """Whether nothing is wrong with the options: else nobody can sign in."""
    return not any(problems(mcp_settings.oauth))


def problems(given: object) -> Iterator[str]:
    """Yield a sentence for each option that cannot be used."""
    if not isinstance(given, Mapping):
        yield f'MCP["OAUTH"] is {given!r}: it must be a dict.'
        return
    for name, value in given.items():
        for problem in _option_problems(str(name), value):
            yield f'MCP["OAUTH"][{name!r}] {problem}'
    if given.get("registration") is given.get("documents") is False:
        yield (
            'MCP["OAUTH"] has False for "registration" and for "documents", so no'
            " program can say who it is. Leave one of them out."
        )


def _option_problems(name: str, value: Any) -> Iterator[str]:
    if name not in OPTIONS:
        close = difflib.get_close_matches(name, OPTIONS, 1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        yield f"is not an option.{meant}"
    elif name in ("registration", "documents"):
        if type(value) is not bool:
            yield f"is {value!r}: it must be True or False."
    elif name == "ca":
        if value and not (isinstance(value, str | Path) and Path(value).is_file()):
            yield f"is {value!r}, which is not a file."
    elif not _is_list_of_texts(value):
        yield f"is {value!r}: it must be a list of texts."
    else:
        yield from _entry_problems(name, value)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(type(each) is str for each in value)


def _entry_problems(name: str, values: Sequence[str]) -> Iterator[str]:
    for each in values:
        if name == "schemes" and (problem := scheme_problem(each)):
            yield f"has {each!r}: {problem}"
        elif name == "networks" and (problem := _network_problem(each)):
            yield f"has {each!r}, which is not a network: {problem}."
        elif name == "clients" and not _is_host(each.removeprefix(OUT)):
            yield (
                f"has {each!r}: it must be a host such as “claude.ai”, or “!claude.ai”"
                " to keep it out."
            )


def _network_problem(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        return str(error)
    return ""


def _is_host(text: str) -> bool:
    return bool(text) and text.isascii() and not set(text) & set("/@ \\?#*")


@receiver(setting_changed)
def _forget(*, setting: str, **_: object) -> None:
    if setting == "MCP":
        oauth_settings.cache_clear()
        is_usable.cache_clear()
