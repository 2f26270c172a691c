"""Write servers and definitions into one reviewable file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused


class Command(BaseCommand):
    help = (
        "Writes servers and definitions, with their working copies and published"
        " versions, to one JSON file for mcp_import. The same content gives the same"
        " bytes. Secrets, tokens, users and calls are not in it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--server",
            action="append",
            default=[],
            metavar="SLUG",
            help="Only this server and its definitions; you can give it several times.",
        )
        parser.add_argument(
            "--working",
            action="store_true",
            help="Only working copies, without version numbers, authors and times: the"
            " same content gives the same bytes at every site, as Git wants it.",
        )
        output = parser.add_mutually_exclusive_group()
        output.add_argument(
            "--output",
            metavar="FILE",
            help="The file to write; by default standard output.",
        )
        output.add_argument(
            "--folder",
            help="Write the working copies into this folder, a file for each of them.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slugs = options["server"]
        try:
            rows = bundle.servers_by_name(slugs) if slugs else bundle.everything()
            if options["folder"]:
                written = bundle.export_files(rows)
            else:
                file = bundle.export_bundle(rows, published=not options["working"])
                written = {options["output"] or "": file}
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems)) from None
        for name, content in written.items():
            # Only the content for standard output has no name.
            if not name:
                self.stdout.write(content.decode(), ending="")
                continue
            path = Path(options["folder"] or "", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
