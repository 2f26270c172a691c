"""A ticket is good at one server of the site that signed it, for ten minutes."""

from __future__ import annotations

import pytest
from django.core import signing
from pytest_django import Settings

from mcp_app.transports.http import probe as probe_tickets
from mcp_app.transports.http.probe import (
    LONGEST,
    Probe,
    Ticket,
    issue_ticket,
    read_ticket,
)


def test_it_says_what_it_is_for() -> None:
    for probe in Probe:
        ticket = issue_ticket("team", probe)
        assert len(ticket) < LONGEST
        assert read_ticket(ticket, "team") == Ticket("team", probe)
        assert read_ticket(ticket, "other") is None


def test_an_old_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = issue_ticket("team", Probe.BODY)
    monkeypatch.setattr(probe_tickets, "AGE_S", -1)
    assert read_ticket(ticket, "team") is None


def test_each_bit_counts() -> None:
    ticket = issue_ticket("team", Probe.BODY).encode()
    for place in range(len(ticket)):
        for bit in range(8):
            altered = bytearray(ticket)
            altered[place] ^= 1 << bit
            assert read_ticket(altered.decode("latin-1"), "team") is None


def test_what_is_none() -> None:
    for text in ("", ":", "a:b:c", "\xff" * 40, "x" * 10_000):
        assert read_ticket(text, "team") is None
    # The site signs other things with the same key.
    assert read_ticket(signing.dumps(["team", "body"]), "team") is None


def test_keys_can_be_rotated(settings: Settings) -> None:
    settings.MCP = {"STATE_KEYS": ["an old key of this site 0123456789"]}
    ticket = issue_ticket("team", Probe.BODY)
    settings.MCP = {"STATE_KEYS": ["a new key of this site 01234567890"]}
    assert read_ticket(ticket, "team") is None
    both = ["a new key of this site 01234567890", "an old key of this site 0123456789"]
    settings.MCP = {"STATE_KEYS": both}
    assert read_ticket(ticket, "team") is not None
