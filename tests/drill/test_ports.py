"""Ports that tests may listen on."""

from __future__ import annotations

import socket

import pytest

from tests.drill.ports import HOST, LOWEST, PortTaken, claimed, free_port


def test_free_port_can_be_claimed_and_reached() -> None:
    port = free_port()
    with claimed(port), socket.create_connection((HOST, port), timeout=5):
        assert port >= LOWEST


def test_port_is_claimed_once() -> None:
    port = free_port()
    with claimed(port), pytest.raises(PortTaken, match=str(port)):
        claimed(port)
