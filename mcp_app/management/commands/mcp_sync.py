"""Bring the rows in line with the code: overlays, and what is reckoned about rows."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from mcp_app.catalog.registry import mcp
from mcp_app.publishing.overlays import make_overlays, reckon_all


class Command(BaseCommand):
    help = (
        "Makes the rows in which staff change texts, limits and permissions of what "
        "code declares, and reckons which definitions are broken. Changes nothing of "
        "what clients see; to be run after a deployment."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        made, broken = make_overlays(mcp), reckon_all(mcp)
        self.stdout.write(f"Made {made} rows for definitions in code.")
        self.stdout.write(f"{broken} definitions are broken.")
