"""Who must agree to calls of a tool that staff made, or made stricter."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0023_approval"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="approval",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "No"),
                    ("self", "The person who calls, on this site"),
                    ("other", "Another person, on this site"),
                ],
                db_default="",
                default="",
                max_length=5,
            ),
        ),
    ]
