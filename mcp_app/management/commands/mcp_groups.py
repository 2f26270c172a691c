"""Make the three groups that have the rights of editors, publishers and operators."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.core.management.base import BaseCommand, CommandError

from mcp_app.auth.groups import GROUPS, complete_groups


class Command(BaseCommand):
    help = (
        "Makes the groups “MCP editors”, “MCP publishers” and “MCP operators”, or gives"
        " them the rights that they lack. It never takes a right away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            completed = complete_groups()
        except Permission.DoesNotExist:
            raise CommandError("There are no permissions yet: run migrate.") from None
        for name in GROUPS:
            done = "made or completed" if name in completed else "has all its rights"
            self.stdout.write(f"{name}: {done}")
