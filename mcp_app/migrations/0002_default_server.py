"""The server `default` at `/mcp`: published, and open to access tokens."""

from __future__ import annotations

from typing import Final

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

from mcp_app.models.fields import digest

CONTENT: Final = "{}"
"""A version of a server in which nothing is filled in."""


def make_default_server(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    using = schema_editor.connection.alias
    content_hash = digest(CONTENT)
    server = apps.get_model("mcp_app", "Server").objects.using(using)
    if server.filter(slug="default").exists():
        # Somebody went back to before this migration.
        return
    row = server.create(slug="default", access="token", content_hash=content_hash)
    version = apps.get_model("mcp_app", "DefinitionVersion").objects.using(using)
    row.published = version.create(
        kind="server",
        ref=str(row.pk),
        number=1,
        content=CONTENT,
        hash=content_hash,
        created=timezone.now(),
    )
    row.save()


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0001_tables")]

    operations = [
        migrations.RunPython(make_default_server, migrations.RunPython.noop),
    ]
