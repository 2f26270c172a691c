"""Print a client's configuration for this server, or write it into the project."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.account.client_configs import CLIENTS, server_name
from mcp_app.account.client_formats import (
    TOKEN,
    ClientProgram,
    JsonClient,
    Launch,
    NotMerged,
)
from mcp_app.account.presentation import lets_sign_in
from mcp_app.auth.resources import LOCAL, server_url
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.management.options import find_server
from mcp_app.models import Server
from mcp_app.protocol.json_types import JsonObject

TRANSPORTS: Final = ("stdio", "http")
ABOUT_TOKEN: Final = (
    f"Replace {TOKEN} with an access token. `manage.py mcp_token new USER NAME` makes"
    " one and prints it once. People make their own in the admin, or on the account"
    " page if the site includes mcp_app.account_urls."
)
ASKS: Final = (
    "{title} asks for the access token. `manage.py mcp_token new USER NAME` makes one"
    " and prints it once."
)
SIGN_IN: Final = "{title} takes no token: give it this address, and sign in."
NO_SIGN_IN: Final = (
    "{title} takes no token, and this server has no sign-in: it cannot be used there."
)
DJANGOS: Final = ("settings", "pythonpath")
"""Options of every Django command that `mcp_stdio` needs, too."""


class Command(BaseCommand):
    help = (
        "Prints the configuration with which an MCP client connects to this site's"
        " server, on stdio and over HTTP. Replace YOUR-TOKEN with an access token."
        " With --write, the configuration is merged into the client's file in this"
        " project, never in the home folder."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client", choices=CLIENTS, help="Which client.")
        parser.add_argument(
            "--transport",
            choices=TRANSPORTS,
            help="Only this transport; --write uses stdio if you leave it out.",
        )
        parser.add_argument(
            "--server",
            default=DEFAULT_SLUG,
            metavar="SLUG",
            help="The address (slug) of the server.",
        )
        parser.add_argument(
            "--user",
            default="",
            metavar="NAME",
            help="The user who makes the calls on stdio.",
        )
        parser.add_argument(
            "--name", metavar="NAME", help="The name of the server in the client."
        )
        parser.add_argument(
            "--url",
            help="The address of the endpoint; by default that of MCP['PUBLIC_URL'], or"
            f" {LOCAL} without it.",
        )
        parser.add_argument(
            "--write", action="store_true", help="Merge it into the client's file here."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        client = CLIENTS[options["client"]]
        server = find_server(options["server"])
        if options["user"] and find_user(options["user"]) is None:
            raise CommandError(no_such_user(options["user"]))
        url = options["url"] or server_url(server.slug)
        name = options["name"] or server_name(server.slug)
        launch = _stdio_launch(server.slug, options)
        token = "" if server.access_names == (PUBLIC,) else TOKEN
        if client.stdio_text(name, launch):
            self._warn_of_no_user(server, options)
        chosen = options["transport"] or ""
        if options["write"]:
            chosen = chosen or TRANSPORTS[0]
            self._write_file(client, chosen, name, launch, url, token)
        else:
            texts = {
                "stdio": client.stdio_text(name, launch),
                "http": client.http_text(name, url, token=token),
            }
            self._print_texts(client, chosen, texts)
        if chosen != "stdio":
            self._tell_of_token(client, server, token)

    def _write_file(
        self,
        client: ClientProgram,
        transport: str,
        name: str,
        launch: Launch,
        url: str,
        token: str,
    ) -> None:
        if not isinstance(client, JsonClient) or not client.file:
            place = client.place_for_people or client.title
            raise CommandError(
                f"{client.title} has no file in a project. Run this command without"
                f" --write, and put the output into {place}."
            )
        entry = client.stdio_entry(launch)
        if transport != "stdio":
            entry = client.http_entry(name, url, token=token)
        path = _merge_into_file(client, name, entry)
        self.stdout.write(f"Wrote {name!r} into {path}.")

    def _print_texts(
        self, client: ClientProgram, transport: str, texts: Mapping[str, str]
    ) -> None:
        if transport and not texts[transport]:
            raise CommandError(f"{client.title} starts no servers: it uses HTTP alone.")
        for each in TRANSPORTS:
            if texts[each] and transport in (each, ""):
                heading = f"{client.title}, {each}: {client.place_for_people}"
                # Stdout may be piped.  Stderr is red unless another style is given.
                self.stderr.write(heading.rstrip(": "), str)
                self.stdout.write(texts[each])

    def _tell_of_token(self, client: ClientProgram, server: Server, token: str) -> None:
        if not token:
            return
        text = ABOUT_TOKEN
        if client.signs_in:
            text = SIGN_IN if lets_sign_in(server) else NO_SIGN_IN
        elif isinstance(client, JsonClient) and client.asks:
            text = ASKS
        self.stderr.write(text.format(title=client.title), str)

    def _warn_of_no_user(self, server: Server, options: Mapping[str, Any]) -> None:
        is_public = server.access_names == (PUBLIC,)
        if not (is_public or options["user"] or options["transport"] == "http"):
            self.stderr.write(
                f"The server {server.slug!r} is not public. On stdio it refuses calls"
                " unless --user or MCP_USER names a user."
            )


def _stdio_launch(slug: str, options: Mapping[str, Any]) -> Launch:
    program, extra_options = _manage_command()
    arguments = [*program, "mcp_stdio"]
    if slug != DEFAULT_SLUG:
        arguments += ["--server", slug]
    if options["user"]:
        arguments += ["--user", options["user"]]
    extra_options |= {each: options[each] for each in DJANGOS if options[each]}
    arguments += [f"--{option}={value}" for option, value in extra_options.items()]
    return Launch(command=sys.executable, arguments=arguments)


def _manage_command() -> tuple[list[str], dict[str, str]]:
    """Return what precedes a command's name, and the options to add after it."""
    program = Path(sys.argv[0]).resolve()
    if program.suffix == ".py" and program.name != "__main__.py":
        return [str(program)], {}
    module = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    return ["-m", "django"], {"settings": module, "pythonpath": str(Path.cwd())}


def _merge_into_file(client: JsonClient, name: str, entry: JsonObject) -> Path:
    project = Path(getattr(settings, "BASE_DIR", Path.cwd())).resolve()
    if project == Path.home().resolve():
        raise CommandError(f"{project} is your home folder. Nothing was written.")
    path = project / client.file
    try:
        real = path.resolve()
        if not real.is_relative_to(project):
            raise CommandError(f"{path} is outside the project. Nothing was written.")
        # Python 3.13 resolves a loop of symbolic links to itself: reading it fails.
        text = real.read_bytes().decode() if os.path.lexists(real) else ""
        _replace_file(real, client.merge_entry(text, name, entry).encode())
    except (NotMerged, OSError, RuntimeError, UnicodeError) as error:
        # Until Python 3.13, a loop of symbolic links is a RuntimeError.
        raise CommandError(f"{path} was not changed: {error}.") from None
    return path


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically; keep its permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # A new file gets the permissions of the user's umask.
    with open(temporary, "xb") as file:
        try:
            file.write(content)
            file.flush()
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise
