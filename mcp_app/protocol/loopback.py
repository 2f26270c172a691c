"""Hosts that lead to this computer alone: for them http is as good as https."""

from __future__ import annotations

from typing import Final

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})
"""As they stand in URLs.  Of other ways to write them a program may think otherwise."""


def is_loopback_host(host: str | None) -> bool:
    """Whether a host, in lower case, is one: also as `urlsplit` names it, without [].

    None, which is no host, is none.
    """
    return host in LOOPBACK_HOSTS or f"[{host}]" in LOOPBACK_HOSTS
