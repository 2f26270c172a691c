"""The help desk as a program beside a test."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.drill.ports import free_port
from tests.newcomer.programs import CHECKOUT, serving, shell_environment

KEY: Final = "canary-of-the-help-desk"
HEADER: Final = "X-Desk-Key"


class HelpDesk:
    def __init__(self, url: str, release: Path) -> None:
        self.url = url
        self._release = release

    @property
    def site(self) -> dict[str, Any]:
        return {
            "title": "Help desk",
            "url": self.url,
            "secret_headers": {HEADER: KEY},
            "networks": ["127.0.0.0/8"],
        }

    def release(self) -> None:
        self._release.touch()

    def tickets(self) -> list[dict[str, Any]]:
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.url}/api/tickets/", headers={HEADER: KEY}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            tickets: list[dict[str, Any]] = json.load(answer)
        return tickets


@contextmanager
def help_desk(folder: Path) -> Iterator[HelpDesk]:
    port, release = free_port(), folder / "released"
    environment = shell_environment(
        HELPDESK_DATABASE=str(folder / "helpdesk.sqlite3"),
        HELPDESK_KEY=KEY,
        HELPDESK_RELEASE=str(release),
    )
    command = [sys.executable, "-m", "tests.helpdesk.serve", str(port)]
    with serving(command, CHECKOUT, environment, port) as served:
        yield HelpDesk(served.url, release)
