"""What staff let the answers of a tool be shown as."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0025_upstreams"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="app",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=255
            ),
        ),
    ]
