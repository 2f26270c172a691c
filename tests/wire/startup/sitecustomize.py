"""Every Python that has this folder on its path checks what its endpoint sends.

For servers that are started by their own command lines, whose application is made
where no test can reach: PYTHONPATH names this folder, WIRE_REPORT the file that gets
a line for each violation.  Python imports this module when it starts.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

CHECKOUT = str(Path(__file__).resolve().parents[3])


def report(violation: str) -> None:
    with open(os.environ["WIRE_REPORT"], "a", encoding="utf-8") as file:
        file.write(f"{violation}\n")


def check() -> None:
    """Put the check around each application that `mcp_app.asgi` makes."""
    # The checkout is on the path for these imports only: a site must do without it.
    sys.path.insert(0, CHECKOUT)
    try:
        middleware = importlib.import_module("tests.wire.middleware")
        asgi = importlib.import_module("mcp_app.asgi")
    finally:
        sys.path.remove(CHECKOUT)
    unchecked = asgi.application

    def application(site: Any) -> Any:
        return middleware.WireCheck(unchecked(site), report)

    asgi.application = application  # type: ignore[attr-defined]


if "WIRE_REPORT" in os.environ:
    check()
