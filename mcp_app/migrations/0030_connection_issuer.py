"""Which company let a program in."""

from __future__ import annotations

from django.db import migrations

from mcp_app.models.fields import ExactCharField


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0029_program_keys")]

    operations = [
        migrations.AddField(
            "connection",
            "issuer",
            ExactCharField(blank=True, db_default="", default="", max_length=40),
        ),
    ]
