"""List what a server offers a user, as a client reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import NoReverseMatch, reverse

from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.management.options import NOT_SERVED, add_caller_options, run_as
from mcp_app.workbench.trying.listings import Item, ServerLists, read_lists

ORIGINS: Final[Mapping[str, str]] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "templates": "resource template",
    "events": "event",
}
"""What the registry calls an item of each list."""


class Command(BaseCommand):
    help = (
        "Lists the tools, prompts, resources and event types that a server offers a"
        " user, with their estimated tokens and where each is declared. If something is"
        " missing, the page “Who can see it” of its definition in the admin says why."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_caller_options(parser)
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        lists = run_as(options["user"], {}, partial(read_lists, options["server"]))
        if lists.reason:
            raise CommandError(lists.reason, returncode=NOT_SERVED)
        if options["json"]:
            rows = {
                name: [_as_json(name, item) for item in items]
                for name, items in lists.items.items()
            }
            self.stdout.write(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            self._print_lists(lists)

    def _print_lists(self, lists: ServerLists) -> None:
        for name, items in lists.items.items():
            width = max((len(visible(item.identity)) for item in items), default=0)
            self.stdout.write(f"{name}: {len(items)}")
            for each in items:
                does = ""
                if name == "tools":
                    does = "reads    " if each.only_reads else "changes  "
                self.stdout.write(
                    f"  {visible(each.identity):{width}}  {does}"
                    f"{each.tokens:>6} tokens  {_declared_at(name, each)}"
                )
        for sentence in mcp.toolset_remarks:
            self.stdout.write(visible(sentence, None))
        self.stdout.write(
            f"All lists take some {lists.token_count:,} tokens of a model's memory. If"
            " something is missing, the page “Who can see it” of its definition in the"
            f" admin says why{_admin_address()}."
        )


def _as_json(name: str, item: Item) -> dict[str, object]:
    row: dict[str, object] = {
        "name": item.identity,
        "title": item.title,
        "tokens": item.tokens,
        "declared": _declared_at(name, item),
    }
    return {**row, "only_reads": item.only_reads} if name == "tools" else row


def _admin_address() -> str:
    try:
        return f": {reverse('admin:mcp_app_tool_changelist')}"
    except NoReverseMatch:
        return ""


def _declared_at(name: str, item: Item) -> str:
    """Return the line of code that declares it, "admin", or "built in"."""
    origin = mcp.origins.get((ORIGINS[name], item.identity))
    if origin is None:
        return "built in" if item.key is None else "admin"
    file = Path(origin.place.file)
    if file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"{file}:{origin.place.line}"
