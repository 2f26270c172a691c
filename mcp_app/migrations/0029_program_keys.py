"""Keys of programs, and the assertions that were used."""

from __future__ import annotations

from django.db import migrations, models

from mcp_app.models.fields import DigestField, ExactCharField


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0028_server_listed")]

    operations = [
        migrations.AddField(
            "accesstoken",
            "public_key",
            models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AlterField(
            "accesstoken",
            "prefix",
            ExactCharField(db_index=True, editable=False, max_length=16),
        ),
        migrations.CreateModel(
            "UsedAssertion",
            [
                ("digest", DigestField(primary_key=True, serialize=False)),
                ("expires", models.DateTimeField(db_index=True)),
            ],
            {"default_permissions": ()},
        ),
    ]
