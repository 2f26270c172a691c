"""Keys of connected apps that may less than the app."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0009_rates")]

    operations = [
        migrations.AddField(
            model_name="issuedtoken",
            name="only_reads",
            field=models.BooleanField(default=False),
        ),
    ]
