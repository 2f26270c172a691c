"""Tasks: calls that run in the background, and which tools can be some."""

from __future__ import annotations

from django.db import migrations, models

import mcp_app.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0014_kept_values"),
    ]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="task",
            field=models.CharField(
                blank=True,
                choices=[
                    ("forbidden", "No"),
                    ("optional", "If the client can"),
                    ("required", "Always"),
                ],
                db_default="",
                default="",
                max_length=9,
            ),
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "public_id",
                    mcp_app.models.fields.ExactCharField(max_length=64, unique=True),
                ),
                ("server", models.CharField(max_length=64)),
                ("tool", models.CharField(max_length=128)),
                (
                    "holder",
                    mcp_app.models.fields.ExactCharField(blank=True, max_length=500),
                ),
                (
                    "person",
                    mcp_app.models.fields.ExactCharField(blank=True, max_length=500),
                ),
                ("caller", models.TextField()),
                ("revision", models.CharField(max_length=16)),
                ("arguments", models.TextField(blank=True)),
                ("state", models.TextField(blank=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("working", "works"),
                            ("input_required", "waits for an answer"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="working",
                        max_length=16,
                    ),
                ),
                ("message", models.CharField(blank=True, max_length=500)),
                ("progress", models.FloatField(null=True)),
                ("total", models.FloatField(null=True)),
                ("result", models.TextField(blank=True)),
                ("error", models.TextField(blank=True)),
                ("owner", models.CharField(blank=True, max_length=32)),
                ("rerun", models.BooleanField(default=False)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("created_ms", models.BigIntegerField()),
                ("updated_ms", models.BigIntegerField()),
                ("ended_ms", models.BigIntegerField(null=True)),
                ("expires_ms", models.BigIntegerField(db_index=True)),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "permissions": [
                    ("view_task", "Can see tasks"),
                    ("cancel_task", "Can cancel tasks"),
                ],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["ended_ms", "owner"], name="mcp_task_open"),
                    models.Index(fields=["person", "ended_ms"], name="mcp_task_person"),
                ],
            },
        ),
    ]
