"""Ports on loopback for servers that tests start."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
EPHEMERAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
RESERVATIONS: Final = Path(tempfile.gettempdir()) / f"mcp-ports-{os.getuid()}"


class PortTaken(Exception):
    """Another program listens on the port."""


def claimed(port: int) -> socket.socket:
    """Return a socket that listens on the port; raise `PortTaken` if another does."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Connections of the last server may linger there, another listener may not.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise PortTaken(f"The port {port} cannot be used: {error.strerror}.") from None
    return listener


def has_listener(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((HOST, port)) == 0


def free_port() -> int:
    """Return a port that is nobody else's, as long as this process lives.

    No outgoing connection can be given it, nor another test: also not while its server
    has yet to start, or is killed and comes back.
    """
    while True:
        # Not for secrets: two test runs only should not try the same ports.
        port = random.randrange(20_000, _first_ephemeral())  # noqa: S311
        if port in _given or not _reserved(port):
            continue
        _given.add(port)
        try:
            claimed(port).close()
        except PortTaken:
            continue
        return port


_given: Final[set[int]] = set()


@cache
def _reservations() -> int:
    """Open the file of which a process locks the byte of each of its ports.

    It is open as long as the process lives: closing it would unlock them all.
    """
    return os.open(RESERVATIONS, os.O_RDWR | os.O_CREAT, 0o600)


def _reserved(port: int) -> bool:
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def directory_of(port: int) -> Path:
    return Path(tempfile.gettempdir()) / f"mcp-drill-{os.getuid()}-{port}"


def _first_ephemeral() -> int:
    if EPHEMERAL_RANGE.exists():
        return int(EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    return 32_768
