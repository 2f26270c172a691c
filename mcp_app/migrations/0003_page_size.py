"""Pages of 1,000 entries: many clients never ask for a second one.

The server `default`, which the migration before this one made with pages of 100, gets
the new size, unless somebody has chosen another.
"""

from __future__ import annotations

from typing import Final

from django.apps.registry import Apps
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SMALL: Final = 100
LARGE: Final = 1_000


def raise_default_server(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    using = schema_editor.connection.alias
    servers = apps.get_model("mcp_app", "Server").objects.using(using)
    servers.filter(slug="default", page_size=SMALL).update(page_size=LARGE)


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0002_default_server")]

    operations = [
        migrations.AlterField(
            model_name="server",
            name="page_size",
            field=models.PositiveIntegerField(
                default=LARGE,
                validators=[MinValueValidator(1), MaxValueValidator(LARGE)],
            ),
        ),
        migrations.RunPython(raise_default_server, migrations.RunPython.noop),
    ]
