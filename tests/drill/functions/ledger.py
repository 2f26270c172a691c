"""Resources that show the ledger: whoever watches a line hears of each save."""

from __future__ import annotations

from mcp_app import mcp
from tests.drill.models import Ledger


@mcp.resource("ledger://{key}", model=Ledger)
def line(key: str) -> str:
    """Who has written the line last."""
    return Ledger.objects.values_list("worker", flat=True).get(key=key)
