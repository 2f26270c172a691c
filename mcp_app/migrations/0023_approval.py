"""Calls that wait until a person decides."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0022_recent_deliveries"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="task",
            options={
                "default_permissions": (),
                "permissions": [
                    ("view_task", "Can see tasks"),
                    ("cancel_task", "Can cancel tasks"),
                    ("approve_task", "Can approve calls"),
                ],
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
            },
        ),
        migrations.AddField(
            model_name="task",
            name="approver",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="call_digest",
            field=models.CharField(max_length=64, null=True, unique=True),
        ),
        migrations.AlterField(
            model_name="task",
            name="status",
            field=models.CharField(
                choices=[
                    ("working", "works"),
                    ("input_required", "waits for an answer"),
                    ("completed", "completed"),
                    ("failed", "failed"),
                    ("cancelled", "cancelled"),
                    ("confirmation", "waits for confirmation"),
                    ("approval", "waits for approval"),
                ],
                default="working",
                max_length=16,
            ),
        ),
    ]
