"""Make, list, replace and revoke access tokens; list and end connected apps."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.utils import timezone

from mcp_app.account import presentation, token_issuance
from mcp_app.account.client_configs import command_line, server_name
from mcp_app.account.client_formats import TOKEN
from mcp_app.auth.program_keys import read_public_key
from mcp_app.auth.resources import server_url
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.conf import mcp_settings
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.principal import Scope
from mcp_app.interface.rules import visible
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.management.options import find_server
from mcp_app.models import AccessToken, Server
from mcp_app.models.fields import split_words
from mcp_app.models.tokens import APP, PROGRAM, VISIBLE_LENGTH
from mcp_app.process.visible import visible_to
from mcp_app.site_time import local_time

May = AccessToken.May
UNITS: Final[Mapping[str, str]] = {"m": "minutes", "h": "hours", "d": "days"}
MAX_DAYS: Final = 36_500
HEADINGS: Final = ("token", "user", "for", "may", "where", "last used", "ends")
APP_HEADINGS: Final = (
    "app",
    "name",
    "host",
    "user",
    "server",
    "may",
    "ends",
    "last used",
)


class Command(BaseCommand):
    help = (
        "Makes, lists, replaces and revokes access tokens; lists and ends connected"
        " apps. A token is printed once, when it is made. When the command to revoke a"
        " token or an app returns, no process accepts it any more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        # Subparsers have the class of the parser, here Django's.
        does = parser.add_subparsers(dest="does", required=True, metavar="WHAT")
        _add_token_options(does.add_parser("new", help="Make a token, and print it."))
        listed = does.add_parser("list", help="List tokens that have not ended.")
        listed.add_argument("--user", default="", help="Only this user's.")
        listed.add_argument(
            "--apps", action="store_true", help="List connected apps instead."
        )
        listed.add_argument(
            "--all", action="store_true", help="Also list those that have ended."
        )
        replace = does.add_parser(
            "replace", help="Make a new token in place of this one, and print it."
        )
        _add_which(replace)
        replace.add_argument(
            "--overlap",
            type=_parse_duration,
            default=timedelta(days=1),
            metavar="TIME",
            help="How long the old token stays valid, for example 0m or 7d; by default"
            " 24h.",
        )
        revoke = does.add_parser(
            "revoke", help="Make a token invalid, or end a connected app, at once."
        )
        _add_which(revoke)

    def handle(self, *args: Any, **options: Any) -> None:
        does: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "new": self._make_token,
            "list": self._list_tokens,
            "replace": self._replace_token,
            "revoke": self._revoke_token,
        }
        try:
            does[options["does"]](options)
        except DatabaseError as error:
            raise CommandError(
                f"The database reported an error: {error} It is not certain whether"
                " the change was made. Check with `mcp_token list --all`."
            ) from None
        except UnicodeEncodeError as error:
            raise CommandError(f"{visible(error.object)!r} is not a text.") from None

    def _make_token(self, options: Mapping[str, Any]) -> None:
        lifetime: timedelta | None = options["expires_in"]
        for name in ("tag", "tool", "network"):
            for each in options[name]:
                if not split_words(each):
                    raise CommandError(f"--{name} {each!r} has no entry. Leave it out.")
        try:
            row, token = token_issuance.issue_token(
                None,
                user=_find_active_user(options["user"]),
                name=options["name"],
                may=May.CHANGE if options["change"] else May.READ,
                tags=" ".join(options["tag"]),
                tools=" ".join(options["tool"]),
                networks=" ".join(options["network"]),
                expires=None if lifetime is None else timezone.now() + lifetime,
                servers=[find_server(slug) for slug in options["server"]],
                public_key=_read_key_file(options["public_key"]),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        self._print_token(row, token)
        self._note_others(row)

    def _replace_token(self, options: Mapping[str, Any]) -> None:
        old = _find_token(options["prefix"])
        try:
            row, token = token_issuance.replace_token(None, old, options["overlap"])
        except token_issuance.Irreplaceable as error:
            raise CommandError(str(error)) from None
        self._print_token(row, token)
        self._write_to_stderr(
            f"The old token, {old.handle}, is valid until"
            f" {_format_moment(old.expires)}."
        )

    def _write_to_stderr(self, text: str) -> None:
        """Write a message to stderr: stdout may be piped into a file."""
        # Django writes stderr in red, unless another style is given.
        self.stderr.write(text, str)

    def _note_others(self, row: AccessToken) -> None:
        rows = AccessToken.objects.filter(user=row.user, name=row.name, connection=None)
        now = timezone.now()
        for other in rows.exclude(pk=row.pk).order_by("pk"):
            if not other.has_ended(now):
                self._write_to_stderr(
                    f"{_owner_name(row)} has another token with this name:"
                    f" {other.handle}"
                    f" It still works; `mcp_token revoke {other.prefix}` ends it."
                )

    def _print_token(self, row: AccessToken, token: str) -> None:
        whose = _owner_name(row)
        if row.public_key:
            self._write_to_stderr(f"The client id of {row.name}, for {whose}:")
            self.stdout.write(row.prefix)
            return
        self._write_to_stderr(f"The token of {whose} for {row.name}, shown only now:")
        self.stdout.write(token)
        slugs = sorted(server.slug for server in row.servers.all())
        slug = slugs[0] if slugs else DEFAULT_SLUG
        # A token that is written to a file is not to appear on the screen as well.
        token_text = token if self.stdout.isatty() else TOKEN
        self._note_hidden(row, slug)
        line = command_line(server_name(slug), server_url(slug), token_text)
        self._write_to_stderr(f"Connect Claude Code with it:\n  {line}")
        if not mcp_settings.public_url:
            self._write_to_stderr(
                "If your site has another host or port, change the address in this"
                " line, or set MCP['PUBLIC_URL']."
            )

    def _note_hidden(self, row: AccessToken, slug: str) -> None:
        """Say what a token does not open at a server, or that it opens nothing."""
        if Server.objects.filter(slug=slug, access=PUBLIC).exists():
            self._write_to_stderr(
                f"The server {slug!r} is public: it looks at no token, and takes"
                " whoever shows a wrong one for nobody."
            )
            return
        view = visible_to(row.user, slug)
        if view is None or row.may == May.CHANGE:
            return
        full_scope = Scope(tags=row.tag_names, tools=row.tool_names)
        tools = [tool for tool in view.tools if full_scope.includes(tool)]
        if hidden := sum(not tool.only_reads for tool in tools):
            self._write_to_stderr(
                f"This token only reads: {hidden} of {len(tools)} tools"
                f" {'is' if hidden == 1 else 'are'} hidden from it. With --change `new`"
                " makes a token for all of them."
            )

    def _revoke_token(self, options: Mapping[str, Any]) -> None:
        row = _find_token(options["prefix"])
        verb, handle = "ended" if row.is_app else "revoked", row.handle
        if row.revoked is not None:
            raise CommandError(f"{handle} was {verb} at {_format_moment(row.revoked)}.")
        token_issuance.end_token(None, row)
        self.stdout.write(
            f"{verb.capitalize()} {handle} of {_owner_name(row)}: {visible(row.name)}."
        )

    def _list_tokens(self, options: Mapping[str, Any]) -> None:
        rows = AccessToken.objects.select_related("user", "connection")
        rows = rows.filter(connection__isnull=not options["apps"])
        if options["user"]:
            rows = rows.filter(user=_find_active_user(options["user"]))
        now = timezone.now()
        columns = _app_columns if options["apps"] else _token_columns
        table_rows = [
            columns(row)
            for row in rows.prefetch_related("servers")
            if options["all"] or not row.has_ended(now)
        ]
        if not table_rows:
            what = "connected apps" if options["apps"] else "tokens"
            self.stdout.write(f"There are no {what}.")
            return
        table = [APP_HEADINGS if options["apps"] else HEADINGS, *table_rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = zip(line, widths, strict=True)
            self.stdout.write("  ".join(f"{cell:<{w}}" for cell, w in cells).rstrip())


def _add_token_options(new: CommandParser) -> None:
    new.add_argument("user", help="The login name of the user whose token it is.")
    new.add_argument("name", help="What the token is for.")
    new.add_argument(
        "--change",
        action="store_true",
        help="Also allow tools that change something; by default only tools that read.",
    )
    for option, metavar, what in (
        ("--tag", "TAG", "Only definitions with this tag"),
        ("--tool", "NAME", "Only this tool"),
        ("--server", "SLUG", "Only at this server"),
        ("--network", "CIDR", "Only from this network"),
    ):
        text = f"{what}; you can give several."
        new.add_argument(
            option, action="append", default=[], metavar=metavar, help=text
        )
    new.add_argument(
        "--public-key",
        type=Path,
        metavar="FILE",
        help="The program proves itself by the key in this file, as PEM or JWK.",
    )
    new.add_argument(
        "--expires-in",
        type=_parse_duration,
        metavar="TIME",
        help="How long the token is valid, for example 30m, 12h or 90d; by default for"
        " ever.",
    )


def _read_key_file(file: Path | None) -> str:
    try:
        return "" if file is None else read_public_key(file.read_text(errors="replace"))
    except (ImportError, OSError) as error:
        raise CommandError(with_remedy(f"{file}: {error}", error)) from None


def _add_which(parser: CommandParser) -> None:
    parser.add_argument(
        "prefix",
        help="The beginning of the token, as `list` shows it: mcp_9fK2ab. For `revoke`"
        " also a connected app, as `list --apps` shows it: app_9f2a01bc.",
    )


def _parse_duration(text: str) -> timedelta:
    # The slice gives "" for an empty text, where an index would fail.
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal() and unit in UNITS):
        raise ArgumentTypeError(f"{text!r} is not a time. Write 30m, 12h or 90d.")
    try:
        time = timedelta(**{UNITS[unit]: int(number)})
    except OverflowError:
        time = timedelta.max
    if time.days > MAX_DAYS:
        raise ArgumentTypeError(f"{text!r} is too long: at most {MAX_DAYS}d.")
    return time


def _find_active_user(name: str) -> Any:
    user = find_user(name)
    if user is None:
        raise CommandError(no_such_user(name))
    return user


def _find_token(text: str) -> AccessToken:
    """Return the one token with this prefix, given alone or as a whole token."""
    prefix = text.strip().rstrip("…")
    if prefix.startswith(APP):
        rows = AccessToken.objects.select_related("user", "connection")
        if row := rows.filter(prefix=prefix, connection__isnull=False).first():
            return row
        raise CommandError(
            f"There is no connected app {visible(prefix)!r}. See `list --apps --all`."
        )
    # The text may be a whole token: never print more than its beginning.
    begins = prefix if prefix.startswith(PROGRAM) else prefix[:VISIBLE_LENGTH]
    tokens = list(AccessToken.objects.select_related("user").filter(prefix=begins))
    if len(prefix) < VISIBLE_LENGTH or not tokens:
        raise CommandError(f"No token begins with {begins!r}. See `list --all`.")
    if len(tokens) > 1 and len(prefix) > VISIBLE_LENGTH:
        tokens = list(AccessToken.objects.of(prefix)) or tokens
    if len(tokens) > 1:
        raise CommandError(
            f"{len(tokens)} tokens begin with {begins!r}. Give the whole token."
        )
    return tokens[0]


def _token_columns(row: AccessToken) -> tuple[str, ...]:
    where = [server.slug for server in row.servers.all()]
    tags = (f"#{tag}" for tag in row.tags.split())
    limits = [*where, *row.networks.split(), *tags, *row.tools.split()]
    return (
        row.handle,
        _owner_name(row),
        str(row.name),
        row.get_may_display(),
        " ".join(limits) or "everywhere",
        _format_moment(row.used),
        _format_end(row, "revoked"),
    )


def _app_columns(row: AccessToken) -> tuple[str, ...]:
    connection = row.connection
    limits = [row.get_may_display(), *(f"#{tag}" for tag in row.tags.split())]
    return (
        row.prefix,
        visible(row.name),
        presentation.program_host(connection),
        _owner_name(row),
        " ".join(server.slug for server in row.servers.all()) or "none",
        " ".join(limits),
        _format_end(row, "ended", f": {connection.get_ended_display()}"),
        _format_moment(row.used),
    )


def _owner_name(row: AccessToken) -> str:
    return visible(str(row.user))


def _format_end(row: AccessToken, does: str, why: str = "") -> str:
    if row.revoked:
        return f"{does} {_format_moment(row.revoked)}{why}"
    return _format_moment(row.expires)


def _format_moment(moment: datetime | None) -> str:
    return "never" if moment is None else f"{local_time(moment):%Y-%m-%d %H:%M}"
