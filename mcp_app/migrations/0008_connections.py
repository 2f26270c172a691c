"""Connected apps, and the keys that they were issued."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

from mcp_app.models.fields import DigestField, ExactCharField

MAY = [("read", "Read"), ("change", "Read and change")]
ENDED = [
    ("code", "Its sign-in was used twice."),
    ("refresh", "An old key of it was used again."),
    ("client", "The program ended it."),
    ("person", "Its owner ended it."),
    ("staff", "Staff ended it."),
]


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0007_listing")]

    operations = [
        migrations.CreateModel(
            name="Connection",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="connection",
                        serialize=False,
                        to="mcp_app.accesstoken",
                    ),
                ),
                ("client_id", models.TextField()),
                ("client_host", ExactCharField(blank=True, max_length=500)),
                ("redirect_uri", models.TextField()),
                ("redirect_host", ExactCharField(blank=True, max_length=500)),
                ("code", DigestField(unique=True)),
                ("code_ends", models.DateTimeField()),
                ("code_used", models.BooleanField(default=False)),
                ("challenge", ExactCharField(max_length=43)),
                ("refreshes", models.BooleanField(default=True)),
                ("refresh_name", DigestField(blank=True, db_index=True)),
                ("refresh", DigestField(blank=True)),
                ("refreshed", models.DateTimeField(null=True)),
                ("received", models.BooleanField(default=False)),
                ("may_ask", models.CharField(choices=MAY, max_length=8)),
                ("until", models.DateTimeField(null=True)),
                (
                    "ended",
                    models.CharField(blank=True, choices=ENDED, max_length=8),
                ),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="IssuedToken",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", DigestField(unique=True)),
                ("created", models.DateTimeField()),
                ("expires", models.DateTimeField(db_index=True)),
                (
                    "token",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="issued",
                        to="mcp_app.accesstoken",
                    ),
                ),
            ],
            options={"default_permissions": ()},
        ),
    ]
