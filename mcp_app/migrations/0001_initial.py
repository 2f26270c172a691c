"""The tables."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mcp_app.models.definitions
import mcp_app.models.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Blob",
            fields=[
                (
                    "digest",
                    mcp_app.models.fields.DigestField(
                        primary_key=True, serialize=False
                    ),
                ),
                ("media_type", models.CharField(blank=True, max_length=255)),
                ("size", models.PositiveBigIntegerField()),
                ("content", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("ref", mcp_app.models.fields.ExactCharField(max_length=255)),
                ("created_ms", models.BigIntegerField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Server",
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
                (
                    "lock_version",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                (
                    "slug",
                    mcp_app.models.fields.ExactCharField(max_length=64, unique=True),
                ),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                ("instructions", models.TextField(blank=True)),
                ("version", models.CharField(blank=True, max_length=64)),
                ("website_url", models.CharField(blank=True, max_length=500)),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("access", models.CharField(blank=True, max_length=500)),
                (
                    "page_size",
                    models.PositiveIntegerField(
                        default=100,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "selection",
                    models.CharField(
                        choices=[
                            ("all", "Everything that is switched on"),
                            ("tags", "Only what has one of these tags"),
                        ],
                        default="all",
                        max_length=8,
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "verbose_name": "server",
                "verbose_name_plural": "servers",
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="Session",
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
                ("digest", mcp_app.models.fields.DigestField(unique=True)),
                (
                    "principal_key",
                    mcp_app.models.fields.ExactCharField(db_index=True, max_length=500),
                ),
                ("server", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("revision", models.CharField(max_length=16)),
                (
                    "client_info",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                (
                    "capabilities",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                (
                    "log_level",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[
                            (0, "debug"),
                            (1, "info"),
                            (2, "notice"),
                            (3, "warning"),
                            (4, "error"),
                            (5, "critical"),
                            (6, "alert"),
                            (7, "emergency"),
                        ],
                        null=True,
                    ),
                ),
                ("initialized", models.BooleanField(default=False)),
                ("created_ms", models.BigIntegerField(db_index=True)),
                ("seen_ms", models.BigIntegerField(db_index=True)),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
            },
        ),
        migrations.CreateModel(
            name="Once",
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
                ("round_trip", mcp_app.models.fields.DigestField()),
                ("key", mcp_app.models.fields.DigestField()),
                ("result", mcp_app.models.fields.JSONTextField(shape="any")),
                ("created_ms", models.BigIntegerField(db_index=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("round_trip", "key"), name="mcp_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Prompt",
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
                (
                    "lock_version",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        default="text",
                        max_length=16,
                    ),
                ),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                (
                    "timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0.001)],
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
                ("position", models.IntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                (
                    "arguments",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                (
                    "updated_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "prompt",
                "verbose_name_plural": "prompts",
                "ordering": ["position", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name",),
                        name="mcp_prompt_name",
                        violation_error_code="unique",
                        violation_error_message="Another prompt has this name.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Resource",
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
                (
                    "lock_version",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        default="text",
                        max_length=16,
                    ),
                ),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                (
                    "timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0.001)],
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
                ("position", models.IntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("mime_type", models.CharField(blank=True, max_length=255)),
                (
                    "annotations",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                ("ttl_ms", models.PositiveIntegerField(default=0)),
                ("public", models.BooleanField(default=False)),
                (
                    "uri",
                    models.TextField(),
                ),
                ("uri_digest", mcp_app.models.fields.DigestField(of="uri")),
                (
                    "size",
                    models.PositiveBigIntegerField(
                        blank=True, editable=False, null=True
                    ),
                ),
                (
                    "updated_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "resource",
                "verbose_name_plural": "resources",
                "ordering": ["position", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("uri_digest",), name="mcp_resource_uri"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResourceTemplate",
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
                (
                    "lock_version",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        default="text",
                        max_length=16,
                    ),
                ),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                (
                    "timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0.001)],
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
                ("position", models.IntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("mime_type", models.CharField(blank=True, max_length=255)),
                (
                    "annotations",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                ("ttl_ms", models.PositiveIntegerField(default=0)),
                ("public", models.BooleanField(default=False)),
                (
                    "uri_template",
                    models.TextField(),
                ),
                (
                    "uri_template_digest",
                    mcp_app.models.fields.DigestField(of="uri_template"),
                ),
                (
                    "updated_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "resource template",
                "verbose_name_plural": "resource templates",
                "ordering": ["position", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("uri_template_digest",), name="mcp_template_uri"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
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
                ("uri", models.TextField()),
                (
                    "uri_digest",
                    mcp_app.models.fields.DigestField(db_index=True, of="uri"),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="mcp_app.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "uri_digest"), name="mcp_subscription"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Tool",
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
                (
                    "lock_version",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        default="text",
                        max_length=16,
                    ),
                ),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                (
                    "timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0.001)],
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
                ("position", models.IntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                (
                    "input_schema",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                (
                    "output_schema",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                ("read_only", models.BooleanField(blank=True, null=True)),
                ("destructive", models.BooleanField(blank=True, null=True)),
                ("idempotent", models.BooleanField(blank=True, null=True)),
                ("open_world", models.BooleanField(blank=True, null=True)),
                (
                    "updated_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "tool",
                "verbose_name_plural": "tools",
                "ordering": ["position", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name",),
                        name="mcp_tool_name",
                        violation_error_code="unique",
                        violation_error_message="Another tool has this name.",
                    )
                ],
            },
        ),
    ]
