"""Show what a bundle would change here, or import it: all or nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.catalog.registry import mcp
from mcp_app.publishing import bundle, services
from mcp_app.publishing.bundle import BundleRefused
from mcp_app.publishing.bundle.applying import report_lines
from mcp_app.publishing.publication import PublicationRefused


class Command(BaseCommand):
    """Exits with status 1 and changes nothing if the file cannot be imported."""

    help = (
        "Shows field by field what a file of mcp_export would change here. With"
        " --apply the file is imported, all or nothing, and every process serves the"
        " result when the command ends. Nothing is deleted, stopped or started."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", help="A file of mcp_export, or its folder; - is standard input."
        )
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument(
            "--check",
            action="store_true",
            help="Only show the changes; this is the default.",
        )
        mode.add_argument(
            "--apply", action="store_true", help="Show the changes and import them."
        )
        publishing = parser.add_mutually_exclusive_group()
        publishing.add_argument(
            "--publish",
            action="store_true",
            help="Also publish everything that was published on the site that made the"
            " file.",
        )
        publishing.add_argument(
            "--publish-working",
            action="store_true",
            help="Also publish the working copies of the file, such as one in Git.",
        )
        parser.add_argument(
            "--user",
            metavar="NAME",
            help="The user who is recorded as the author of the changes.",
        )
        parser.add_argument(
            "--looked-at",
            metavar="DIGEST",
            help="The digest that --check printed last, so that only exactly those"
            " changes are imported, conflicts too.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        author = _find_author(options["user"])
        publishes_working = bool(options["publish_working"])
        publish = publishes_working or bool(options["publish"])
        origin = "" if options["file"] == "-" else Path(options["file"]).name
        try:
            incoming = bundle.read_files(_read_files(options["file"]))
            incoming = replace(incoming, publishes_working=publishes_working)
            comparison = bundle.compare_bundle(incoming, mcp)
            for line in report_lines(comparison, publish=publish):
                self.stdout.write(line)
            self.stdout.write(f"Looked at: {comparison.looked_at}")
            # Only --apply overwrites, and a digest says that somebody has seen it.
            overwrite = not options["apply"] or bool(options["looked_at"])
            bundle.check_importable(comparison, publish=publish, overwrite=overwrite)
            if options["apply"]:
                looked_at = options["looked_at"] or comparison.looked_at
                imported_rows = services.import_bundle(
                    None,
                    incoming,
                    author=author,
                    looked_at=looked_at,
                    publish=publish,
                    origin=origin,
                )
                self.stdout.write(f"{len(imported_rows)} imported.")
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems)) from None
        except PublicationRefused as refused:
            raise CommandError(refused.message) from None


def _read_files(name: str) -> dict[str, bytes]:
    """Read a file, or all *.json of a folder, each by its name in there."""
    folder = Path(name)
    if not folder.is_dir():
        return {"": _read_file(name)}
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        raise CommandError(f"{name}: there is no *.json in this folder.")
    return {str(path.relative_to(folder)): _read_file(str(path)) for path in paths}


def _read_file(name: str) -> bytes:
    """Read a file; one byte above the limit is enough to see that it is too large."""
    max_bytes = bundle.MOST_BYTES + 1
    if name == "-":
        return sys.stdin.buffer.read(max_bytes)
    try:
        with Path(name).open("rb") as file:
            return file.read(max_bytes)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None


def _find_author(name: str | None) -> AbstractBaseUser | None:
    if name is None:
        return None
    users = get_user_model()
    try:
        author: AbstractBaseUser = users._default_manager.get_by_natural_key(name)
    except users.DoesNotExist:
        raise CommandError(f"There is no user “{name}”.") from None
    return author
