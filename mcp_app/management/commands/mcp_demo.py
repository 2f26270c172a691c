"""Make demo content and a first staff user, where there is none."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction

from mcp_app.interface.server import BY_TOKEN, DEFAULT_SLUG, PUBLIC
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Server
from mcp_app.models.definitions import Source
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

USER_NAME = "admin"


class Command(BaseCommand):
    """Changes nothing where it ran before; what staff changed or closed stays."""

    help = (
        "Makes a demo prompt, resource and template, opens the default server to "
        "everyone, and makes the first staff user with a random password. What is "
        "there already stays as it is."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            made = self._make_content()
            opened = made and self._open_default_server()
            password = _make_first_user()
        if made:
            self.stdout.write("Made the demo prompt, resource and template.")
        if opened:
            self.stdout.write("The server “default” is public.")
        if password:
            self.stdout.write(
                f"Staff user: {USER_NAME}, password: {password} (shown only now)"
            )

    def _make_content(self) -> bool:
        if any(row.rows().filter(source=Source.HERE).exists() for row in _rows()):
            return False
        for row in _rows():
            row.full_clean()
            row.save()
            row.rows().publish([row], note="The demo.")
        return True

    def _open_default_server(self) -> bool:
        server, _ = Server.objects.get_or_create(slug=DEFAULT_SLUG)
        if server.lock_version or server.access != BY_TOKEN:
            return False
        server.title = server.title or "Demo"
        server.instructions = server.instructions or (
            "A demo of django-mcp-app: tools declared in code, and a prompt, a "
            "resource and a template that were made in the admin."
        )
        server.access = PUBLIC
        server.save()
        Server.objects.publish([server], note="The demo.")
        return True


def _make_first_user() -> str:
    """Make a superuser where no staff user is there; return its password or ""."""
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
            uri="demo://policy/returns",
            mime_type="text/markdown",
            config=_text({"text": RETURNS}),
            size=len(RETURNS.encode()),
        ),
        ResourceTemplate(
            name="greeting",
            title="A greeting",
            description="A greeting for a name.",
            uri_template="demo://greeting/{name}",
            mime_type="text/plain",
            config=_text({"text": "Hello, {{name}}!"}),
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
