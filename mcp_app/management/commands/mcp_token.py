"""Make, list, replace and revoke access tokens."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.utils import timezone

from mcp_app.auth.permissions import named
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Server
from mcp_app.models.listings import words
from mcp_app.models.tokens import SHOWN

UNITS: Final[Mapping[str, str]] = {"m": "minutes", "h": "hours", "d": "days"}
MOST_DAYS: Final = 36_500


class Command(BaseCommand):
    help = (
        "Makes, lists, replaces and revokes access tokens. A token is printed once, "
        "when it is made; a revoked one lets nobody in, at any process, once the "
        "command has returned."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        # Subparsers are of the class of the parser, which is Django's here.
        does = parser.add_subparsers(dest="does", required=True, metavar="WHAT")
        _describe(does.add_parser("new", help="Make a token, and print it."))
        listed = does.add_parser("list", help="List tokens that have not ended.")
        listed.add_argument("--user", default="", help="Only this user's.")
        listed.add_argument("--all", action="store_true", help="Ended ones, too.")
        replace = does.add_parser("replace", help="Make the next one, and print it.")
        _add_which(replace)
        replace.add_argument(
            "--overlap",
            type=_time,
            default=timedelta(days=1),
            metavar="TIME",
            help="So long the old one is good, too: 0m, 24h (if nothing is said), 7d.",
        )
        _add_which(does.add_parser("revoke", help="Let nobody in by it any more."))

    def handle(self, *args: Any, **options: Any) -> None:
        does: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "new": self._make,
            "list": self._list,
            "replace": self._replace,
            "revoke": self._revoke,
        }
        try:
            does[options["does"]](options)
        except DatabaseError as error:
            raise CommandError(
                f"The database did not do it: {error} Nothing is claimed; look with"
                " `mcp_token list --all`."
            ) from None
        except UnicodeEncodeError as error:
            raise CommandError(f"{visible(error.object)!r} is no text.") from None

    def _make(self, options: Mapping[str, Any]) -> None:
        after: timedelta | None = options["expires_in"]
        for name in ("tag", "network"):
            for each in options[name]:
                if not words(each):
                    raise CommandError(f"--{name} {each!r} names none: leave it out.")
        try:
            row, token = AccessToken.objects.make(
                user=_user(options["user"]),
                name=options["name"],
                may=AccessToken.May.CHANGE
                if options["change"]
                else AccessToken.May.READ,
                tags=" ".join(options["tag"]),
                networks=" ".join(options["network"]),
                expires=None if after is None else timezone.now() + after,
                servers=[_server(slug) for slug in options["server"]],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        self._show(row, token)

    def _replace(self, options: Mapping[str, Any]) -> None:
        old = _token(options["prefix"])
        try:
            row, token = old.replace(options["overlap"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        self._show(row, token)
        self.stderr.write(
            f"The old one, {old.prefix}…, is good until {_at(old.expires)}."
        )

    def _show(self, row: AccessToken, token: str) -> None:
        # What is said about it is no part of what may be piped into a file.
        whose = _user_of(row)
        self.stderr.write(f"The token of {whose} for {row.name}, shown only now:")
        self.stdout.write(token)

    def _revoke(self, options: Mapping[str, Any]) -> None:
        row = _token(options["prefix"])
        if row.revoked is not None:
            raise CommandError(f"{row.prefix}… was revoked at {_at(row.revoked)}.")
        row.revoke()
        self.stdout.write(f"Revoked {row.prefix}… of {_user_of(row)}: {row.name}.")

    def _list(self, options: Mapping[str, Any]) -> None:
        rows = AccessToken.objects.select_related("user").prefetch_related("servers")
        if options["user"]:
            rows = rows.filter(user=_user(options["user"]))
        now = timezone.now()
        shown = [
            _columns(row, now)
            for row in rows
            if options["all"] or not row.has_ended(now)
        ]
        if not shown:
            self.stdout.write("There are no tokens.")
            return
        table = [("token", "user", "for", "may", "where", "last used", "ends"), *shown]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = zip(line, widths, strict=True)
            self.stdout.write("  ".join(f"{cell:<{w}}" for cell, w in cells).rstrip())


def _describe(new: CommandParser) -> None:
    """Say what a new token may be, and what it may be limited to."""
    new.add_argument("user", help="Who is let in by it: the name to log in with.")
    new.add_argument("name", help="What it is for.")
    new.add_argument(
        "--change",
        action="store_true",
        help="Tools that change something may be used, too; else those that read.",
    )
    new.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="TAG",
        help="Only what has this tag, or another one that is named.",
    )
    new.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="SLUG",
        help="Only at this server, or another one that is named.",
    )
    new.add_argument(
        "--network",
        action="append",
        default=[],
        metavar="CIDR",
        help="Only from this network, or another one that is named.",
    )
    new.add_argument(
        "--expires-in",
        type=_time,
        metavar="TIME",
        help="Until then, for example 30m, 12h or 90d; without it for ever.",
    )


def _add_which(parser: CommandParser) -> None:
    parser.add_argument(
        "prefix", help="How the token begins, as `list` shows it: mcp_9fK2ab."
    )


def _time(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal() and unit in UNITS):
        raise ArgumentTypeError(f"{text!r} is no time: write 30m, 12h or 90d.")
    try:
        time = timedelta(**{UNITS[unit]: int(number)})
    except OverflowError:
        time = timedelta.max
    if time.days > MOST_DAYS:
        raise ArgumentTypeError(f"{text!r} is too long: at most {MOST_DAYS}d.")
    return time


def _user(name: str) -> Any:
    user = named(name)
    if user is None:
        raise CommandError(f"There is no active user {name!r} here.")
    return user


def _server(slug: str) -> Server:
    server = Server.objects.filter(slug=slug).first()
    if server is None:
        raise CommandError(f"There is no MCP server {slug!r} here.")
    return server


def _token(text: str) -> AccessToken:
    """Return the one token that begins like this; a whole one is taken, too."""
    prefix = text.strip().rstrip("…")
    found = list(
        AccessToken.objects.select_related("user").filter(prefix=prefix[:SHOWN])
    )
    if len(prefix) < SHOWN or not found:
        # It may be a whole token, which has no place in a log.
        raise CommandError(
            f"No token begins with {prefix[:SHOWN]!r}: see `list --all`."
        )
    if len(found) > 1 and len(prefix) > SHOWN:
        found = list(AccessToken.objects.of(prefix)) or found
    if len(found) > 1:
        raise CommandError(
            f"{len(found)} tokens begin with {prefix[:SHOWN]!r}: give the whole one."
        )
    return found[0]


def _columns(row: AccessToken, now: datetime) -> tuple[str, ...]:
    where = [each.slug for each in row.servers.all()]
    limits = [*where, *row.networks.split(), *(f"#{tag}" for tag in row.tags.split())]
    return (
        f"{row.prefix}…",
        _user_of(row),
        str(row.name),
        row.get_may_display(),
        " ".join(limits) or "everywhere",
        _at(row.used),
        f"revoked {_at(row.revoked)}" if row.revoked else _at(row.expires),
    )


def _user_of(row: AccessToken) -> str:
    return visible(str(row.user))


def _at(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
