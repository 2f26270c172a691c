"""Resources that show the ledger: whoever watches a line hears of each save.

A tool enters lines that a person must approve.
"""

from __future__ import annotations

import time

from mcp_app import mcp
from tests.drill.functions.drills import _enter
from tests.drill.models import Ledger


@mcp.resource("ledger://{key}", model=Ledger)
def line(key: str) -> str:
    """Who has written the line last."""
    return Ledger.objects.values_list("worker", flat=True).get(key=key)


@mcp.tool(approval="other", tags=["private"], atomic=False)
def pay(amount: int, seconds: float = 0) -> str:
    """Pay somebody; each run is a line, which is committed before it sleeps."""
    _enter(f"paid {amount}")
    time.sleep(seconds)
    return f"Paid {amount}."
