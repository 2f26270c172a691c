"""Stop what clients may do, at once and in every process, and start it again."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError

from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import one_line, visible
from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import MAX_NAME_LENGTH, Running
from mcp_app.publishing import services
from mcp_app.publishing.stop_targets import (
    ALONE,
    KINDS,
    WHAT,
    TargetMissing,
    find_target,
)
from mcp_app.site_time import local_time

COLUMNS: Final = ("number", "what", "since", "by", "running calls", "why")


class Command(BaseCommand):
    help = (
        "Stops everything, all tools that change things, a server, or one tool,"
        " resource, template, prompt or event type, and starts it again. When the"
        " command returns, every process obeys. It does not need the admin, the cache"
        " or the channel layer."
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
            "list": self._list_stops,
            "stop": self._stop_scope,
            "start": self._start_again,
        }
        try:
            does[options["does"]](options)
        except DatabaseError as error:
            raise CommandError(
                f"The database reported an error: {error} It is not certain whether"
                " the change was made. Check with `mcp_stop list`."
            ) from None

    def _stop_scope(self, options: Mapping[str, Any]) -> None:
        scope, row = _scope_and_row(options["what"], options["which"])
        running = Running.FINISH if options["finish"] else Running.CANCEL
        try:
            stop = services.stop(
                None,
                scope,
                row,
                name=_acting_name(options),
                running=running,
                reason=options["reason"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        stop.refresh_from_db()
        message = f"Stopped: {stop.what}. No process serves it any more."
        if stop.cancelled:
            message += f" Running calls that were cancelled: {stop.cancelled}."
        if stop.reason != options["reason"]:
            message += f" The reason was stored in a changed form: “{stop.reason}”."
        self.stdout.write(message)

    def _start_again(self, options: Mapping[str, Any]) -> None:
        keys = [stop.pk for stop in _stops_to_end(options["what"], options["which"])]
        ended = services.start(None, keys, name=_acting_name(options))
        if not ended:
            raise CommandError(f"It is not stopped.{_remaining_stops()}")
        what = ", ".join(dict.fromkeys(each.what for each in ended))
        self.stdout.write(f"Started again: {what}.{_remaining_stops()}")

    def _list_stops(self, options: Mapping[str, Any]) -> None:
        rows = Stop.objects.all() if options["all"] else Stop.objects.on()
        visible_rows = [_stop_columns(row) for row in rows]
        if not visible_rows:
            self.stdout.write("Nothing is stopped.")
            return
        table = [COLUMNS, *visible_rows]
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


def _acting_name(options: Mapping[str, Any]) -> str:
    name = one_line(options["by"], MAX_NAME_LENGTH)
    if not name:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):
            # In a container, the user id may have no name.
            name = "somebody"
        name = f"{name} (mcp_stop)"
    return name


def _scope_and_row(what: str, name: str) -> tuple[str, PublishedRow | None]:
    if what in WHAT and what not in ALONE and not name:
        raise CommandError(f"Name the {what}: mcp_stop … {what} NAME.")
    try:
        return find_target(f"{what}:{name}" if name else what, mcp)
    except TargetMissing as missing:
        raise CommandError(str(missing)) from None


def _stops_to_end(what: str, name: str) -> list[Stop]:
    rows = Stop.objects.on()
    if what == "all" and not name:
        return list(rows)
    if what.isascii() and what.isdecimal() and not name:
        # 18 digits fit into the primary key on every database.
        stops = list(rows.filter(pk=int(what[:18])))
        if not stops:
            raise CommandError(f"There is no active stop {what}.{_remaining_stops()}")
        return stops
    if what in ALONE or not name:
        return list(rows.of(*_scope_and_row(what, name)))
    stops = _stops_of_name(what, name)
    if len({stop.ref for stop in stops}) > 1:
        numbers = ", ".join(f"{each.pk} ({_stop_columns(each)[1]})" for each in stops)
        raise CommandError(
            f"Several stops apply to “{visible(name)}”: {numbers}. Start them by their"
            " numbers: mcp_stop start NUMBER."
        )
    return stops


def _stops_of_name(what: str, name: str) -> list[Stop]:
    """Return the stops of the row of this name, or of a deleted row of this name."""
    active = list(Stop.objects.on())
    try:
        _scope, row = _scope_and_row(what, name)
    except CommandError:
        kind = KINDS.get(what, what)
        stops = [each for each in active if (each.kind, each.served) == (kind, name)]
        if not stops:
            raise
        return stops
    return [each for each in active if row is not None and each.holds(row)]


def _remaining_stops() -> str:
    """Name what stays stopped; "" if nothing does."""
    rows = [each.what for each in Stop.objects.on()]
    return f" Still stopped: {', '.join(dict.fromkeys(rows))}." if rows else ""


def _stop_columns(row: Stop) -> tuple[str, ...]:
    since = _format_moment(row.at)
    if row.ended is not None:
        since = f"{since} to {_format_moment(row.ended)} ({visible(row.ended_by_name)})"
    what = row.what if not row.kind else f"{row.kind} {row.what}"
    running = f"{row.running}, {row.cancelled} cancelled" if row.cancels else "finish"
    by, reason = visible(row.by_name), visible(row.reason) or "-"
    return str(row.pk), what, since, by, running, reason


def _format_moment(moment: datetime) -> str:
    return f"{local_time(moment):%Y-%m-%d %H:%M:%S}"
