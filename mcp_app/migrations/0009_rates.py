"""How often a tool may be called, and how often persons call at each process."""

from __future__ import annotations

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0008_connections")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="calls_per_minute",
            field=models.PositiveIntegerField(
                blank=True,
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="demand",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="worker",
            name="demand_ms",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
