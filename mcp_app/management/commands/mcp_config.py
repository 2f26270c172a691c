"""Print how a client is told of this site's server, or write it into the project."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.account.addresses import server_name, server_url
from mcp_app.auth.permissions import named
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.models import Server
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.clients import CLIENTS, TOKEN, ClientProgram, Launch, NotMerged

TRANSPORTS: Final = ("stdio", "http")
ABOUT_TOKEN: Final = (
    f"{TOKEN} stands for an access token. `manage.py mcp_token new USER NAME` makes one"
    " and prints it once; people make their own in the admin, or on the page of"
    " mcp_app.account_urls where the site has it."
)
DJANGOS: Final = ("settings", "pythonpath")
"""Options of every command, which a server needs as well as this one."""


class Command(BaseCommand):
    help = (
        "Prints the configuration by which an MCP client finds this site's server, on "
        "stdio and over HTTP; YOUR-TOKEN stands for a token. With --write it is merged "
        "into the client's file in this project, never in the home folder."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client", choices=CLIENTS, help="Which client.")
        parser.add_argument(
            "--transport",
            choices=TRANSPORTS,
            help="Only this one; --write takes stdio without it.",
        )
        parser.add_argument(
            "--server", default=DEFAULT_SLUG, metavar="SLUG", help="Which server."
        )
        parser.add_argument(
            "--user",
            default="",
            metavar="NAME",
            help="As whom calls on stdio are made.",
        )
        parser.add_argument(
            "--name", metavar="NAME", help="What the client calls the server."
        )
        parser.add_argument(
            "--url", help="The address of the endpoint; that of MCP['PUBLIC_URL']."
        )
        parser.add_argument(
            "--write", action="store_true", help="Merge it into the client's file here."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        client = CLIENTS[options["client"]]
        server = Server.objects.filter(slug=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no MCP server {options['server']!r} here.")
        if options["user"] and named(options["user"]) is None:
            raise CommandError(f"There is no active user {options['user']!r} here.")
        self._warn(server, options)
        url = options["url"] or server_url(server.slug)
        token = "" if _is_public(server) else TOKEN
        entries: dict[str, JsonObject] = {
            "stdio": client.on_stdio(_launch(server.slug, options)),
            "http": client.over_http(url, token=token),
        }
        name = options["name"] or server_name(server.slug)
        if options["write"]:
            chosen = options["transport"] or TRANSPORTS[0]
            path = _write(client, name, entries[chosen])
            self.stdout.write(f"Wrote {name!r} into {path}.")
            if token and chosen != "stdio":
                self.stderr.write(ABOUT_TOKEN)
            return
        for transport in TRANSPORTS:
            if options["transport"] in (transport, None):
                self._show(client, transport, client.document(name, entries[transport]))
        if token and options["transport"] != "stdio":
            self.stderr.write(ABOUT_TOKEN)

    def _warn(self, server: Server, options: Mapping[str, Any]) -> None:
        """Say that a client could not use what is printed for stdio."""
        if not (
            _is_public(server) or options["user"] or options["transport"] == "http"
        ):
            self.stderr.write(
                f"The server {server.slug!r} is not public: on stdio it refuses whoever"
                " is named neither by --user nor by MCP_USER."
            )

    def _show(self, client: ClientProgram, transport: str, document: str) -> None:
        place = client.file or client.elsewhere
        # What is said about it is no part of what may be piped into a file.
        self.stderr.write(f"{client.title}, {transport}: {place}")
        self.stdout.write(document)


def _is_public(server: Server) -> bool:
    return server.access_names == (PUBLIC,)


def _launch(slug: str, options: Mapping[str, Any]) -> Launch:
    """Return how this very command line would serve on stdio."""
    program, named = _manage()
    arguments = [*program, "mcp_stdio"]
    if slug != DEFAULT_SLUG:
        arguments += ["--server", slug]
    if options["user"]:
        arguments += ["--user", options["user"]]
    named |= {each: options[each] for each in DJANGOS if options[each]}
    arguments += [f"--{option}={value}" for option, value in named.items()]
    return Launch(command=sys.executable, arguments=arguments)


def _manage() -> tuple[list[str], dict[str, str]]:
    """Return what comes before a command's name, and options that it needs after."""
    program = Path(sys.argv[0]).resolve()
    if program.suffix == ".py" and program.name != "__main__.py":
        return [str(program)], {}
    module = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    return ["-m", "django"], {"settings": module, "pythonpath": str(Path.cwd())}


def _write(client: ClientProgram, name: str, entry: JsonObject) -> Path:
    """Merge an entry into the client's file of this project; return its path."""
    if not client.file:
        raise CommandError(
            f"{client.title} has no file in a project: merge what is printed without"
            f" --write into {client.elsewhere}."
        )
    project = _project()
    path = project / client.file
    try:
        real = path.resolve()
        if not real.is_relative_to(project):
            raise CommandError(f"{path} leads out of the project: nothing was written.")
        text = real.read_bytes().decode() if real.exists() else ""
        _replace(real, client.merged(text, name, entry).encode())
    except (NotMerged, OSError, RuntimeError, UnicodeError) as error:
        # A link that leads in a circle is a RuntimeError until Python 3.13.
        raise CommandError(f"{path} stays as it was: {error}.") from None
    return path


def _project() -> Path:
    """Return the folder of the project; raise where that is the home folder."""
    folder = Path(getattr(settings, "BASE_DIR", Path.cwd())).resolve()
    if folder == Path.home().resolve():
        raise CommandError(f"{folder} is your home folder: nothing was written.")
    return folder


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all; its rights stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # What is new has the rights that the user's mask leaves.
    with open(beside, "xb") as file:
        try:
            file.write(content)
            file.flush()
            if path.exists():
                beside.chmod(path.stat().st_mode & 0o777)
            beside.replace(path)
        except BaseException:
            beside.unlink()
            raise
