"""A server starts with access tokens as its only way in; so does the first one.

Nobody comes in who could not before: no token was there when that was decided, and
each is made by somebody who may.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def open_untouched_server(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let tokens in at the server that 0002 made, where nobody has saved it since.

    Somebody who has saved it may have closed it.
    """
    servers = apps.get_model("mcp_app", "Server").objects
    servers.using(schema_editor.connection.alias).filter(
        slug="default", access="", lock_version=0
    ).update(access="token")


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0016_access_tokens")]

    operations = [
        migrations.AlterField(
            model_name="server",
            name="access",
            field=models.CharField(blank=True, default="token", max_length=500),
        ),
        migrations.RunPython(open_untouched_server, migrations.RunPython.noop),
    ]
