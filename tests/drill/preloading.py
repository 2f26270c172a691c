"""Gunicorn with an application that is there before the fork, as with `--preload`."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from gunicorn.app.base import BaseApplication

from tests.drill.servers import GRACE_S


class Gunicorn(BaseApplication):  # type: ignore[misc]
    """Serves it on a socket that listens already, with these of gunicorn's settings."""

    def __init__(
        self,
        application: Any,
        listener: socket.socket,
        options: Mapping[str, str | int],
    ) -> None:
        self._application = application
        self._listener = listener
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        # It closes what it was given.
        self.cfg.set("bind", f"fd://{os.dup(self._listener.fileno())}")
        for name, value in self._options.items():
            self.cfg.set(name, value)
        self.cfg.set("preload_app", True)
        self.cfg.set("loglevel", "error")
        self.cfg.set("graceful_timeout", GRACE_S)
        self.cfg.set("control_socket_disable", True)

    def load(self) -> Any:
        return self._application
