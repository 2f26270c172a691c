"""Make the shop, two servers and a first staff user, and print how to connect."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from django.utils import timezone

from mcp_app.account import token_issuance
from mcp_app.account.client_configs import command_line
from mcp_app.account.client_formats import TOKEN
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import BY_TOKEN, DEFAULT_SLUG, PUBLIC
from mcp_app.models import AccessToken, DefinitionRow, Prompt, Resource, Server
from mcp_app.models.definitions import Source
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_project.shop.content import make_shop

USER_NAME: Final = "admin"
TEAM: Final = "team"
SIGN_IN: Final = "oauth"
URL: Final = "http://127.0.0.1:8000"
MANAGE: Final = ".venv/bin/python manage.py"
ANOTHER: Final = f"{MANAGE} mcp_token new {USER_NAME} laptop --change --server {TEAM}"
NOTE: Final = "The demo."


@dataclass(frozen=True)
class Secrets:
    """What is shown only at the first start; "" at later ones."""

    password: str = ""
    token: str = ""


class Command(BaseCommand):
    """Makes nothing twice; keeps what staff changed or closed."""

    help = (
        "Makes the demo shop with its prompt and its resource, opens the server"
        " “default” to everyone, makes the server “team”, which requires a token, and"
        " the first staff user with a random password. Existing rows are not changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", default=URL, help=f"The site. Default: {URL}.")

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            first = make_shop(timezone.localdate())
            if first:
                _make_content()
                _open_default_server()
                _make_team_server()
            password = _make_first_user()
            token = _make_token() if first else ""
        self.stdout.write(_block(options["url"].rstrip("/"), Secrets(password, token)))


def _block(url: str, shown: Secrets) -> str:
    """Return the addresses, the login, and the lines that connect Claude Code."""
    login = (
        f"{USER_NAME} / {shown.password}   (shown only now)"
        if shown.password
        else f"as before; for a new password: {MANAGE} changepassword {USER_NAME}"
    )
    endpoint = f"{url}/mcp"
    lines = [
        ("MCP endpoint", f"{endpoint}   (public)"),
        ("", f"{endpoint}/{TEAM}   (sign in, or send a token)"),
        ("Admin", f"{url}/admin/"),
        ("Log in", login),
        ("Connect", command_line("shop", endpoint, "")),
    ]
    token = shown.token or TOKEN
    lines.append(("", command_line(f"shop-{TEAM}", f"{endpoint}/{TEAM}", token)))
    if not shown.token:
        lines.append(("Token", f"made at the first start; another: {ANOTHER}"))
    return "\n".join(f"{name:<15}{text}" for name, text in lines)


def _make_content() -> None:
    """Make what staff would make, if staff have made nothing yet."""
    if any(row.rows().filter(source=Source.HERE).exists() for row in _rows()):
        return
    for row in _rows():
        row.full_clean()
        row.save()
        row.rows().publish([row], note=NOTE)


def _open_default_server() -> None:
    """Make the default server public, unless somebody has changed it."""
    server, _ = Server.objects.get_or_create(slug=DEFAULT_SLUG)
    if server.lock_version or server.access != BY_TOKEN:
        return
    server.title = server.title or "Shop"
    server.instructions = server.instructions or (
        "A small shop. Customers can ask where their order is, and book a table."
    )
    server.access = PUBLIC
    server.save()
    Server.objects.publish([server], note=NOTE)


def _make_team_server() -> None:
    """Make the server for the shop's people: it offers what needs a permission."""
    server, made = Server.objects.get_or_create(
        slug=TEAM,
        defaults={
            "title": "Shop, for its team",
            "instructions": "Find orders and add notes to them.",
            "access": _ways(),
        },
    )
    if made:
        Server.objects.publish([server], note=NOTE)


def _ways() -> str:
    """Return the ways in: signing in, if programs can, and an access token."""
    there = mcp_settings.authentication
    return " ".join(name for name in (SIGN_IN, BY_TOKEN) if name in there)


def _make_token() -> str:
    """Return a new token of the first superuser for the team's server."""
    user = get_user_model()._default_manager.filter(is_superuser=True).first()
    if user is None:
        return ""
    _, token = token_issuance.issue_token(
        None,
        user=user,
        name="The demo",
        may=AccessToken.May.CHANGE,
        servers=[*Server.objects.filter(slug=TEAM)],
    )
    return token


def _make_first_user() -> str:
    """Make a superuser if there is no staff user; return the password or ""."""
    users = get_user_model()
    if users._default_manager.filter(is_staff=True).exists():
        return ""
    password = secrets.token_urlsafe(12)
    users._default_manager.create_superuser(
        **{users.USERNAME_FIELD: USER_NAME}, password=password
    )
    return password


def _rows() -> list[DefinitionRow]:
    return [
        Prompt(
            name="answer_a_complaint",
            title="Answer a complaint",
            description="Writes a kind answer to a complaint.",
            arguments=_text(
                [
                    {
                        "name": "complaint",
                        "title": "Complaint",
                        "description": "What the customer wrote.",
                        "required": True,
                    },
                    {"name": "tone", "description": "For example friendly or formal."},
                ]
            ),
            config=_text(
                {
                    "messages": [
                        _message("Answer this complaint: {{complaint}}\nTone: {{tone}}")
                    ]
                }
            ),
        ),
        Resource(
            name="returns",
            title="How to return something",
            description="What people may send back, and until when.",
            uri="shop://policy/returns",
            mime_type="text/markdown",
            config=_text({"text": RETURNS}),
            size=len(RETURNS.encode()),
        ),
    ]


def _text(value: object) -> str:
    return jsonrpc.write(value).decode()


def _message(text: str) -> JsonObject:
    return {"role": "user", "content": {"type": "text", "text": text}}


RETURNS = """\
# Returns

Everything can be sent back within 30 days, unused and with its receipt.
Gift cards cannot be returned.
"""
