"""Tickets of probes: what this site signs, and what it asks a server to do.

A ticket is signed with the site's keys (`conf.secrets`), and good at one server for ten
minutes.  Whoever has no ticket finds no probe: the header means nothing then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.core import signing

from mcp_app.conf import secrets

HEADER: Final = "Mcp-Probe"
NAME: Final = HEADER.lower().encode("ascii")
"""As ASGI servers write it."""
AGE_S: Final = 600
"""Seconds for which a ticket is good."""
LONGEST: Final = 512
"""Characters of a ticket that are looked at."""
_SALT: Final = "mcp_app.probe"


class Probe(StrEnum):
    """What a server does for a probe, after it has said what arrived."""

    TICKS = "ticks"
    """It sends five parts, 0.25 s apart."""
    SILENCE = "silence"
    """It sends nothing for longer than a heartbeat, and then its end."""
    HOLD = "hold"
    """It keeps the request open for three seconds."""
    REFUSAL = "refusal"
    """It answers 401 with a challenge."""
    BODY = "body"
    """It reads the body."""


SENT: Final[Mapping[str, str]] = {
    "Authorization": "Bearer probe",
    "Accept": "application/json, text/event-stream",
    "Mcp-Session-Id": "probe",
    "Mcp-Protocol-Version": "2025-11-25",
    "Mcp-Method": "ping",
    "Mcp-Name": "probe",
    "Last-Event-ID": "probe",
}
"""Headers that each probe has: the server says of each only whether it came so."""
PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
"""The body of a probe: who does not know the ticket answers it, and does nothing."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a valid ticket asks for."""

    server: str
    probe: Probe


def issue_ticket(server: str, probe: Probe) -> str:
    """Return a ticket for a server, by its slug."""
    return signing.dumps([server, probe.value], key=secrets()[0], salt=_SALT)


def read_ticket(text: str, server: str) -> Ticket | None:
    """Return what a ticket asks of this server; None if it is not valid there."""
    if len(text) > LONGEST:
        return None
    keys: list[str | bytes] = [*secrets()]
    try:
        slug, probe = signing.loads(
            text, key=keys[0], salt=_SALT, max_age=AGE_S, fallback_keys=keys[1:]
        )
    except signing.BadSignature:
        return None
    return Ticket(slug, Probe(probe)) if slug == server else None
