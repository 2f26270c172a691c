"""What `LOGGING` can name: a formatter, and a filter for access logs."""

from __future__ import annotations

from mcp_app.interface.access_logs import WithoutSessionIds
from mcp_app.interface.json_logs import JsonFormatter

__all__ = ["JsonFormatter", "WithoutSessionIds"]
