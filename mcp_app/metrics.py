"""What a site registers that has a registry of Prometheus of its own."""

from __future__ import annotations

from mcp_app.telemetry.collector import Collector

__all__ = ["Collector"]
