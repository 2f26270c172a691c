"""Goes back to each migration and forward again, with rows, in a process of its own."""

from __future__ import annotations

from typing import Final

from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from mcp_app.catalog.registry import mcp
from mcp_app.models import Change, Question, Server, Session, Subscription, Tool, Worker
from mcp_app.models.definitions import Source
from mcp_app.models.streams import Stream
from mcp_app.publishing.overlays import make_overlays
from tests.published import published
from tests.publishing.bundle.content import MODELS, clear, fill

APP: Final = "mcp_app"
DEFAULT: Final = ("server", "default")
"""What the migrations make."""


def migrate(name: str) -> None:
    call_command("migrate", APP, name, verbosity=0)


def put_rows() -> None:
    clear()
    Session.objects.all().delete()
    Worker.objects.all().delete()
    fill()
    Server.objects.publish([Server.objects.create(slug="all")])
    worker = Worker.objects.create(id="w", host="h", pid=1, started_ms=1, seen_ms=1)
    session = Session.objects.create(
        digest="d", principal_key="k", created_ms=1, seen_ms=1
    )
    session.subscriptions.create(uri="x:a")
    Subscription.objects.create(uri="x:a", worker=worker)
    Stream.objects.create(
        session=session, public_id="s", requests="[]", state="open", created_ms=1
    )
    Question.objects.ask(session.pk, "q")
    Change.objects.record("uri", "a")
    make_overlays(mcp)


def served() -> set[tuple[str, str]]:
    """Return the names of what clients see, but for what code declares."""
    return {
        (row.kind_of_row, str(row))
        for model in MODELS
        for row in model.rows().filter(published__isnull=False)
        if getattr(row, "source", "") != Source.CODE
    }


def main() -> None:
    names = sorted(
        name for app, name in MigrationLoader(connection).disk_migrations if app == APP
    )
    call_command("migrate", verbosity=0)
    put_rows()
    before = served()
    migrate(names[0])
    migrate(names[-1])
    assert served() == before | {DEFAULT}, served()
    migrate(names[0])
    migrate(names[-1])
    migrate("zero")
    migrate(names[-1])
    assert served() == {DEFAULT}, served()
    # Rows can be made and published as before.
    published(Tool(name="after"))
