"""Ports that tests may listen on."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.drill import ports
from tests.drill.ports import HOST, LOWEST, PortTaken, claimed, free_port
from tests.drill.running import ROOT


def test_free_port_can_be_claimed_and_reached() -> None:
    port = free_port()
    with claimed(port), socket.create_connection((HOST, port), timeout=60):
        assert port >= LOWEST


def test_nobody_else_is_given_a_port() -> None:
    """Though nothing listens there yet, or any more."""
    port = free_port()
    program = f"from tests.drill import ports; print(ports._reserved({port}))"
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True
    )
    assert told.stdout == b"False\n"
    assert port in ports._given


def test_port_is_claimed_once() -> None:
    port = free_port()
    with claimed(port), pytest.raises(PortTaken, match=str(port)):
        claimed(port)
