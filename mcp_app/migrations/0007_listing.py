"""Servers whose tools are found by searching."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0006_openapi")]

    operations = [
        migrations.AddField(
            model_name="server",
            name="listing",
            field=models.CharField(
                choices=[
                    ("all", "All of its tools"),
                    ("search", "Three tools that search, and tools with these tags"),
                ],
                default="all",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="listed_tags",
            field=models.CharField(blank=True, max_length=500),
        ),
    ]
