"""Stop what clients may do, at once and in every process, and start it again."""

from __future__ import annotations

import difflib
import getpass
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import one_line, visible
from mcp_app.invalidation import workers
from mcp_app.models import PublishedRow, Server, Stop
from mcp_app.models.stops import LONGEST_NAME, By, Running, Scope
from mcp_app.publishing.publication import NEAR, find_definition, near
from mcp_app.site_time import local_time

KINDS: Final[Mapping[str, str]] = {
    "tool": "tool",
    "resource": "resource",
    "template": "resourcetemplate",
    "prompt": "prompt",
}
"""The models of definitions, by the kinds' names on the command line."""
ALONE: Final = (Scope.EVERYTHING.value, Scope.CHANGES.value)
"""Scopes that take no name."""
WHAT: Final = (*ALONE, Scope.SERVER.value, *KINDS)
COLUMNS: Final = ("number", "what", "since", "by", "running calls", "why")


class Command(BaseCommand):
    help = (
        "Stops everything, all tools that change things, a server, or one tool,"
        " resource, template or prompt, and starts it again. When the command"
        " returns, every process obeys. It does not need the admin, the cache or the"
        " channel layer."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        does = parser.add_subparsers(dest="does", required=True, metavar="WHAT")
        listed = does.add_parser("list", help="List the stops.")
        listed.add_argument(
            "--all", action="store_true", help="Also list those that have ended."
        )
        stop = does.add_parser("stop", help="Stop something, at once.")
        _add_which(stop, WHAT)
        stop.add_argument(
            "--reason", default="", help="The reason. Staff see it, clients do not."
        )
        stop.add_argument(
            "--finish",
            action="store_true",
            help="Let running calls finish; by default they are cancelled.",
        )
        start = does.add_parser("start", help="Start something again.")
        _add_which(start, ("all", *WHAT))
        for each in (stop, start):
            each.add_argument(
                "--by",
                default="",
                metavar="NAME",
                help="Your name, which staff will read; by default the name of your"
                " account on this machine.",
            )

    def handle(self, *args: Any, **options: Any) -> None:
        does: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "list": self._list,
            "stop": self._stop,
            "start": self._start,
        }
        try:
            does[options["does"]](options)
        except DatabaseError as error:
            raise CommandError(
                f"The database reported an error: {error} It is not certain whether"
                " the change was made. Check with `mcp_stop list`."
            ) from None

    def _stop(self, options: Mapping[str, Any]) -> None:
        scope, row = _which(options["what"], options["which"])
        running = Running.FINISH if options["finish"] else Running.CANCEL
        try:
            stop = workers.stop(
                scope, row, by=_by(options), running=running, reason=options["reason"]
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        stop.refresh_from_db()
        said = f"Stopped: {stop.what}. No process serves it any more."
        if stop.cancelled:
            said += f" Running calls that were cancelled: {stop.cancelled}."
        if stop.reason != options["reason"]:
            said += f" The reason was stored in a changed form: “{stop.reason}”."
        self.stdout.write(said)

    def _start(self, options: Mapping[str, Any]) -> None:
        found = _stops_of(options["what"], options["which"])
        ended = workers.start([each.pk for each in found], by=_by(options))
        if not ended:
            raise CommandError(f"It is not stopped.{_still()}")
        what = ", ".join(dict.fromkeys(each.what for each in ended))
        self.stdout.write(f"Started again: {what}.{_still()}")

    def _list(self, options: Mapping[str, Any]) -> None:
        rows = Stop.objects.all() if options["all"] else Stop.objects.on()
        shown = [_columns(row) for row in rows]
        if not shown:
            self.stdout.write("Nothing is stopped.")
            return
        table = [COLUMNS, *shown]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = zip(line, widths, strict=True)
            self.stdout.write("  ".join(f"{cell:<{w}}" for cell, w in cells).rstrip())


def _add_which(parser: CommandParser, what: Sequence[str]) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        help=f"One of {', '.join(what)}"
        + (", or a number as `list` shows it." if "all" in what else "."),
    )
    parser.add_argument(
        "which",
        nargs="?",
        default="",
        metavar="NAME",
        help="The address (slug) of the server, the name of the tool or prompt, or"
        " the URI.",
    )


def _by(options: Mapping[str, Any]) -> By:
    name = one_line(options["by"], LONGEST_NAME)
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):
            # In a container, the user id may have no name.
            name = "somebody"
        name = f"{name} (mcp_stop)"
    return By(name)


def _which(what: str, name: str) -> tuple[str, PublishedRow | None]:
    """Return the scope, and the row of a server or a definition."""
    if what not in WHAT:
        raise CommandError(_unknown("what can be stopped", what, WHAT))
    if what in ALONE:
        if name:
            raise CommandError(
                f"“{what}” takes no name, but you gave “{visible(name)}”."
            )
        return what, None
    if not name:
        raise CommandError(f"Name the {what}: mcp_stop … {what} NAME.")
    if what == Scope.SERVER:
        return what, _server(name)
    row = find_definition(KINDS[what], name, mcp)
    if row is None:
        raise CommandError(_missing(what, name, near(KINDS[what], name)))
    return Scope.DEFINITION.value, row


def _server(slug: str) -> Server:
    rows = {row.slug: row for row in Server.objects.all()}
    row = rows.get(slug)
    if row is None:
        slugs = list(rows)
        close = difflib.get_close_matches(slug, slugs, NEAR)
        raise CommandError(_missing("server", slug, close or slugs[:NEAR]))
    return row


def _stops_of(what: str, name: str) -> list[Stop]:
    """Return the stops to end."""
    rows = Stop.objects.on()
    if what == "all" and not name:
        return list(rows)
    if what.isascii() and what.isdecimal() and not name:
        found = list(rows.filter(pk=int(what[:18])))
        if not found:
            raise CommandError(f"There is no active stop {what}.{_still()}")
        return found
    if what in ALONE or not name:
        return list(rows.of(*_which(what, name)))
    found = _stops_of_name(what, name)
    if len({each.ref for each in found}) > 1:
        raise CommandError(_several(found, name))
    return found


def _stops_of_name(what: str, name: str) -> list[Stop]:
    """Return the stops of the row of this name, or of a deleted row of this name."""
    on = list(Stop.objects.on())
    try:
        _scope, row = _which(what, name)
    except CommandError:
        kind = KINDS.get(what, what)
        found = [each for each in on if (each.kind, each.served) == (kind, name)]
        if not found:
            raise
        return found
    return [each for each in on if row is not None and each.holds(row)]


def _several(found: Sequence[Stop], name: str) -> str:
    numbers = ", ".join(f"{each.pk} ({_columns(each)[1]})" for each in found)
    return (
        f"Several stops apply to “{visible(name)}”: {numbers}. Start them by their"
        " numbers: mcp_stop start NUMBER."
    )


def _missing(what: str, name: str, close: Sequence[str]) -> str:
    said = f"There is no {what} “{visible(name)}”."
    if close:
        said += f" Similar names: {', '.join(visible(each) for each in close)}."
    return said


def _unknown(of: str, given: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(given, known, 1)
    said = f"“{visible(given)}” is not {of}: {', '.join(known)}."
    return f"{said} Did you mean “{close[0]}”?" if close else said


def _still() -> str:
    """Name what stays stopped; "" for nothing."""
    rows = [each.what for each in Stop.objects.on()]
    return f" Still stopped: {', '.join(dict.fromkeys(rows))}." if rows else ""


def _columns(row: Stop) -> tuple[str, ...]:
    since = _at(row.at)
    if row.ended is not None:
        since = f"{since} to {_at(row.ended)} ({visible(row.ended_by_name)})"
    what = row.what if not row.kind else f"{row.kind} {row.what}"
    running = f"{row.running}, {row.cancelled} cancelled" if row.cancels else "finish"
    return (
        str(row.pk),
        what,
        since,
        visible(row.by_name),
        running,
        visible(row.reason) or "-",
    )


def _at(moment: datetime) -> str:
    return f"{local_time(moment):%Y-%m-%d %H:%M:%S}"
