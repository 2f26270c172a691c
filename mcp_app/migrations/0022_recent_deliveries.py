"""What became of the last events that were posted to a webhook."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0021_token_offers"),
    ]

    operations = [
        migrations.AddField(
            model_name="eventsubscription",
            name="recent",
            field=models.TextField(db_default="[]", default="[]"),
        ),
    ]
