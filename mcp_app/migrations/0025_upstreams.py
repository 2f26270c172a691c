"""How another MCP server differs from what was taken over, and since when it is away."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0024_tool_approval"),
    ]

    operations = [
        migrations.AddField(
            model_name="openapidocument",
            name="differing",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="openapidocument",
            name="unread_since",
            field=models.DateTimeField(null=True),
        ),
    ]
