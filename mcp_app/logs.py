"""What `LOGGING` can name: a formatter, and a filter for access logs."""

from __future__ import annotations

from mcp_app.interface.logs import JsonFormatter, WithoutSessionIds

__all__ = ["JsonFormatter", "WithoutSessionIds"]
