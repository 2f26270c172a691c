"""Synchronize rows with the code: overlays, and the findings stored about rows."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from mcp_app.catalog.registry import mcp
from mcp_app.publishing.overlays import make_overlays
from mcp_app.publishing.row_findings import store_all_findings


class Command(BaseCommand):
    help = (
        "Makes the rows in which staff change texts, limits and permissions of"
        " definitions in code, and finds out which definitions are broken. Clients"
        " see no change. Run it after a deployment."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        created, broken = make_overlays(mcp), store_all_findings(mcp)
        if created:
            self.stdout.write(f"Definitions in code that got a row: {created}.")
        else:
            self.stdout.write("All definitions in code have their rows already.")
        if broken:
            self.stdout.write(
                f"Broken definitions: {broken}. The lists in the admin show them first."
            )
        else:
            self.stdout.write("No definition is broken.")
