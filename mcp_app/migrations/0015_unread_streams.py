from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0014_held_sessions"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(fields=["session", "state"], name="mcp_stream_state"),
        ),
    ]
