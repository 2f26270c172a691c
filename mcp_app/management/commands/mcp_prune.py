"""Remove rows that nobody needs any more, as serving processes do by themselves."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from mcp_app.conf import mcp_settings
from mcp_app.process.janitor import all_expired_rows


class Command(BaseCommand):
    help = (
        "Removes expired sessions, streams that have ended, old calls and other rows"
        " that nobody needs any more, in small transactions. Processes that serve do"
        " the same every ten minutes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Only count the rows that would be removed.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        dry = options["dry_run"]
        expired = all_expired_rows(mcp_settings.limits)
        width = max(len(each.what) for each in expired)
        self.stdout.write("Would be removed:" if dry else "Removed:")
        total = 0
        try:
            for each in expired:
                # Delete one batch after another, until there is none.
                rows = each.count() if dry else sum(iter(each.remove, None))
                total += rows
                self.stdout.write(f"  {each.what:<{width}}  {rows:>10,}")
        except DatabaseError as error:
            raise CommandError(f"The database refused: {error}") from error
        self.stdout.write(f"  {'in all':<{width}}  {total:>10,}")
