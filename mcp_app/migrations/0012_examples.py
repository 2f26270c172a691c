"""Values that staff keep to try a definition with, and what must hold then."""

from __future__ import annotations

from django.db import migrations, models

import mcp_app.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0011_words"),
    ]

    operations = [
        migrations.CreateModel(
            name="Example",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("ref", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=100)),
                ("values", mcp_app.models.fields.JSONTextField(shape="object")),
                ("expect", models.CharField(blank=True, max_length=255)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "ref", "name"), name="mcp_example_name"
                    )
                ],
            },
        ),
    ]
