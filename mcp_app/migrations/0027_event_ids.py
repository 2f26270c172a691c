"""Which ids the receiver of events takes, and its last answer."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0026_tool_app"),
    ]

    operations = [
        migrations.AddField(
            model_name="eventsubscription",
            name="by_event",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="eventsubscription",
            name="last_status",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
