"""Values of calls, which are kept for some days where staff switch it on."""

from __future__ import annotations

from django.db import migrations, models

import mcp_app.models.fields


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0013_session_permissions")]

    operations = [
        migrations.AlterModelOptions(
            name="call",
            options={
                "default_permissions": (),
                "permissions": [
                    ("view_call", "Can see calls"),
                    ("view_values", "Can see values of calls"),
                ],
                "verbose_name": "call",
                "verbose_name_plural": "calls",
            },
        ),
        migrations.AddField(
            model_name="call",
            name="arguments",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="tool",
            name="hidden_values",
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name="tool",
            name="keeps_values",
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name="call",
            index=mcp_app.models.fields.PartialIndex(
                fields=["time_ms"],
                name="mcp_call_arguments",
                rows=models.Q(("arguments", ""), _negated=True),
            ),
        ),
    ]
