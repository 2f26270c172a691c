"""No permissions to add and to change sessions: nobody can."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0012_examples")]

    operations = [
        migrations.AlterModelOptions(
            name="session",
            options={
                "default_permissions": ("view", "delete"),
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
            },
        ),
    ]
