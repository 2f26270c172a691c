"""Whether strangers may read what a server says of itself."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0027_event_ids")]

    operations = [
        migrations.AddField(
            "server", "listed", models.BooleanField(db_default=False, default=False)
        )
    ]
