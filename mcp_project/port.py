"""Ends with a sentence where nothing can be served on a port of 127.0.0.1.

python -m mcp_project.port 8000
"""

from __future__ import annotations

import errno
import socket
import sys
from typing import Final

HOST: Final = "127.0.0.1"
PORTS: Final = range(1, 65_536)


def problem(port: str) -> str | None:
    """Say in a sentence why a port cannot be used, None where it can."""
    if not (port.isascii() and port.isdecimal() and int(port) in PORTS):
        return f"PORT={port} is no port: it must be a number from 1 to {PORTS[-1]}."
    with socket.socket() as listener:
        # Connections of the last server may linger there, another server may not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, int(port)))
            listener.listen()
        except OSError as error:
            return _refusal(port, error)
    return None


def _refusal(port: str, error: OSError) -> str:
    another = f"Choose another: make run PORT={int(port) % PORTS[-1] + 1}"
    if error.errno == errno.EADDRINUSE:
        return f"Another program uses the port {port} of {HOST}. {another}"
    return f"The port {port} of {HOST} cannot be used ({error.strerror}). {another}"


if __name__ == "__main__":
    sys.exit(problem(sys.argv[1]))
