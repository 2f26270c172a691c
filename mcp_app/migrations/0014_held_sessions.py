from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0013_logged_messages"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="holder",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=32
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="whole",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["holder"], name="mcp_session_holder"),
        ),
    ]
