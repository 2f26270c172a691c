"""Documents of OpenAPI as they were last read, and the tools that were made of them."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mcp_app.models.fields

KEY = models.BigAutoField(
    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
)


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0005_call_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="OpenApiDocument",
            fields=[
                ("id", KEY),
                ("title", models.CharField(max_length=200)),
                ("site", models.CharField(max_length=40)),
                ("location", models.CharField(blank=True, max_length=500)),
                ("version", models.CharField(blank=True, max_length=100)),
                ("digest", mcp_app.models.fields.DigestField()),
                ("offers", models.BinaryField()),
                ("operations", models.PositiveIntegerField()),
                ("read_at", models.DateTimeField()),
                (
                    "read_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["title", "site"], "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="ImportedOperation",
            fields=[
                ("id", KEY.clone()),
                ("key", models.TextField()),
                ("key_digest", mcp_app.models.fields.DigestField(of="key")),
                ("base", models.TextField()),
                (
                    "tool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported_operation",
                        to="mcp_app.tool",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported",
                        to="mcp_app.openapidocument",
                    ),
                ),
            ],
            options={"ordering": ["pk"], "default_permissions": ()},
        ),
        migrations.AddConstraint(
            model_name="openapidocument",
            constraint=models.UniqueConstraint(
                fields=("site", "title"), name="mcp_openapi_site_title"
            ),
        ),
        migrations.AddConstraint(
            model_name="importedoperation",
            constraint=models.UniqueConstraint(
                fields=("document", "key_digest"), name="mcp_openapi_operation"
            ),
        ),
    ]
