"""The server `default`, which lets nobody in; 0017 adds who shows an access token."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def make_default_server(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    servers = apps.get_model("mcp_app", "Server").objects
    servers.using(schema_editor.connection.alias).get_or_create(slug="default")


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0001_initial")]

    operations = [
        migrations.RunPython(make_default_server, migrations.RunPython.noop),
    ]
