from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0012_worker_reports"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="logged",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="LoggedMessage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("seq", models.BigIntegerField(null=True)),
                ("payload", models.TextField()),
                ("created_ms", models.BigIntegerField(db_index=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="mcp_app.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "seq"), name="mcp_logged"
                    )
                ],
            },
        ),
    ]
