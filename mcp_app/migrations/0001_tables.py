"""The tables."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import mcp_app.models.fields
import mcp_app.models.versions


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
            name="CallStatistic",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "seconds",
                        "start_ms",
                        "server",
                        "kind",
                        "name",
                        "outcome",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seconds", models.PositiveIntegerField()),
                ("start_ms", models.BigIntegerField()),
                ("server", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("kind", models.CharField(max_length=16)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=255)),
                ("outcome", models.CharField(max_length=16)),
                ("calls", models.BigIntegerField(default=0)),
                ("dropped", models.BigIntegerField(default=0)),
                ("total_us", models.BigIntegerField(default=0)),
                ("most_us", models.BigIntegerField(default=0)),
                ("to_1", models.BigIntegerField(default=0)),
                ("to_2", models.BigIntegerField(default=0)),
                ("to_5", models.BigIntegerField(default=0)),
                ("to_10", models.BigIntegerField(default=0)),
                ("to_20", models.BigIntegerField(default=0)),
                ("to_50", models.BigIntegerField(default=0)),
                ("to_100", models.BigIntegerField(default=0)),
                ("to_200", models.BigIntegerField(default=0)),
                ("to_500", models.BigIntegerField(default=0)),
                ("to_1000", models.BigIntegerField(default=0)),
                ("to_2000", models.BigIntegerField(default=0)),
                ("to_5000", models.BigIntegerField(default=0)),
                ("to_10000", models.BigIntegerField(default=0)),
                ("longer", models.BigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="CallWriter",
            fields=[
                (
                    "id",
                    models.CharField(max_length=32, primary_key=True, serialize=False),
                ),
                ("number", models.BigIntegerField()),
                ("written_ms", models.BigIntegerField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("ref", mcp_app.models.fields.ExactCharField(max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name="Counter",
            fields=[
                (
                    "name",
                    models.CharField(max_length=16, primary_key=True, serialize=False),
                ),
                ("value", models.BigIntegerField(default=0)),
                ("floor", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Stop",
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
                    "scope",
                    models.CharField(
                        choices=[
                            ("everything", "Everything"),
                            ("changes", "All tools that change things"),
                            ("server", "One server"),
                            ("definition", "One tool, resource, template or prompt"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "kind",
                    mcp_app.models.fields.ExactCharField(blank=True, max_length=32),
                ),
                (
                    "ref",
                    mcp_app.models.fields.ExactCharField(blank=True, max_length=64),
                ),
                ("name", models.CharField(blank=True, max_length=255)),
                ("served", models.TextField(blank=True)),
                ("served_hash", mcp_app.models.fields.DigestField(of="served")),
                (
                    "running",
                    models.CharField(
                        choices=[("cancel", "cancel"), ("finish", "let finish")],
                        default="cancel",
                        max_length=6,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("by_name", models.CharField(blank=True, max_length=255)),
                ("by_key", models.CharField(blank=True, max_length=255)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("cancelled", models.PositiveIntegerField(default=0)),
                ("ended", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("ended_by_name", models.CharField(blank=True, max_length=255)),
                ("ended_by_key", models.CharField(blank=True, max_length=255)),
            ],
            options={
                "verbose_name": "stop",
                "verbose_name_plural": "stops",
                "ordering": ["at", "pk"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.CharField(max_length=32, primary_key=True, serialize=False),
                ),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                ("started_ms", models.BigIntegerField()),
                ("seen_ms", models.BigIntegerField(db_index=True)),
                (
                    "report",
                    mcp_app.models.fields.JSONTextField(
                        blank=True, db_default="", default="", shape="object"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Call",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("time_ms", models.BigIntegerField(db_index=True)),
                ("server", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("kind", models.CharField(max_length=16)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=255)),
                ("version", models.PositiveIntegerField()),
                ("outcome", models.CharField(max_length=16)),
                ("principal", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("user_id", mcp_app.models.fields.ExactCharField(max_length=255)),
                ("user_name", models.CharField(max_length=255)),
                (
                    "principal_client",
                    mcp_app.models.fields.ExactCharField(max_length=255),
                ),
                ("client_name", models.CharField(max_length=128)),
                ("client_version", models.CharField(max_length=64)),
                ("session", models.CharField(max_length=16)),
                ("revision", models.CharField(max_length=16)),
                ("took_us", models.BigIntegerField()),
                ("size", models.BigIntegerField()),
                ("arguments_size", models.BigIntegerField()),
                ("arguments_digest", models.CharField(max_length=32)),
                ("failure", models.CharField(max_length=16)),
                ("error", models.CharField(max_length=500)),
            ],
            options={
                "verbose_name": "call",
                "verbose_name_plural": "calls",
                "permissions": [("view_call", "Can see calls")],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["name", "time_ms"], name="mcp_call_name"),
                    models.Index(
                        fields=["outcome", "time_ms"], name="mcp_call_outcome"
                    ),
                    models.Index(fields=["user_name", "time_ms"], name="mcp_call_user"),
                    models.Index(fields=["failure"], name="mcp_call_failure"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DefinitionVersion",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("ref", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("number", models.PositiveIntegerField()),
                ("content", models.TextField()),
                ("hash", mcp_app.models.fields.DigestField(of="content")),
                ("restored", models.PositiveIntegerField(null=True)),
                ("note", models.TextField(blank=True)),
                ("author_name", models.CharField(blank=True, max_length=255)),
                ("created", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("publish", "Can publish and roll back"),
                    ("try", "Can try in the console"),
                    ("try_as", "Can try as another user"),
                    ("behind", "Can change what stands behind a definition"),
                    ("stop", "Can stop and start"),
                    ("grant", "Can change who may use it"),
                    ("bundle", "Can import and export bundles"),
                ],
                "default_permissions": (),
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
                (
                    "content_hash",
                    mcp_app.models.versions.ContentHashField(
                        default="", editable=False
                    ),
                ),
                ("broken", models.TextField(blank=True, editable=False)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                ("kind", models.CharField(default="text", max_length=16)),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                ("groups", models.TextField(blank=True)),
                ("rule", models.CharField(blank=True, max_length=255)),
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
                (
                    "source",
                    models.CharField(
                        choices=[("here", "made here"), ("code", "from code")],
                        default="here",
                        editable=False,
                        max_length=4,
                    ),
                ),
                (
                    "published_identity",
                    models.CharField(
                        editable=False, max_length=64, null=True, unique=True
                    ),
                ),
                ("tokens", models.PositiveIntegerField(default=0, editable=False)),
                ("to_fix", models.PositiveIntegerField(default=0, editable=False)),
                ("advices", models.PositiveIntegerField(default=0, editable=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                (
                    "arguments",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                (
                    "published",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_app.definitionversion",
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
                "verbose_name": "prompt",
                "verbose_name_plural": "prompts",
                "ordering": ["position", "name"],
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
                (
                    "content_hash",
                    mcp_app.models.versions.ContentHashField(
                        default="", editable=False
                    ),
                ),
                ("broken", models.TextField(blank=True, editable=False)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                ("kind", models.CharField(default="text", max_length=16)),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                ("groups", models.TextField(blank=True)),
                ("rule", models.CharField(blank=True, max_length=255)),
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
                (
                    "source",
                    models.CharField(
                        choices=[("here", "made here"), ("code", "from code")],
                        default="here",
                        editable=False,
                        max_length=4,
                    ),
                ),
                (
                    "published_identity",
                    models.CharField(
                        editable=False, max_length=64, null=True, unique=True
                    ),
                ),
                ("tokens", models.PositiveIntegerField(default=0, editable=False)),
                ("to_fix", models.PositiveIntegerField(default=0, editable=False)),
                ("advices", models.PositiveIntegerField(default=0, editable=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("mime_type", models.CharField(blank=True, max_length=255)),
                (
                    "annotations",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                ("ttl_ms", models.PositiveIntegerField(default=0)),
                ("public", models.BooleanField(default=False)),
                ("uri", models.TextField()),
                ("uri_digest", mcp_app.models.fields.DigestField(of="uri")),
                (
                    "size",
                    models.PositiveBigIntegerField(
                        blank=True, editable=False, null=True
                    ),
                ),
                (
                    "published",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_app.definitionversion",
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
                (
                    "content_hash",
                    mcp_app.models.versions.ContentHashField(
                        default="", editable=False
                    ),
                ),
                ("broken", models.TextField(blank=True, editable=False)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                ("kind", models.CharField(default="text", max_length=16)),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                ("groups", models.TextField(blank=True)),
                ("rule", models.CharField(blank=True, max_length=255)),
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
                (
                    "source",
                    models.CharField(
                        choices=[("here", "made here"), ("code", "from code")],
                        default="here",
                        editable=False,
                        max_length=4,
                    ),
                ),
                (
                    "published_identity",
                    models.CharField(
                        editable=False, max_length=64, null=True, unique=True
                    ),
                ),
                ("tokens", models.PositiveIntegerField(default=0, editable=False)),
                ("to_fix", models.PositiveIntegerField(default=0, editable=False)),
                ("advices", models.PositiveIntegerField(default=0, editable=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("mime_type", models.CharField(blank=True, max_length=255)),
                (
                    "annotations",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                ("ttl_ms", models.PositiveIntegerField(default=0)),
                ("public", models.BooleanField(default=False)),
                ("uri_template", models.TextField()),
                (
                    "uri_template_digest",
                    mcp_app.models.fields.DigestField(of="uri_template"),
                ),
                (
                    "suggestions",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="object"),
                ),
                (
                    "published",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_app.definitionversion",
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
                "verbose_name": "resource template",
                "verbose_name_plural": "resource templates",
                "ordering": ["position", "name"],
            },
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
                    "content_hash",
                    mcp_app.models.versions.ContentHashField(
                        default="", editable=False
                    ),
                ),
                ("broken", models.TextField(blank=True, editable=False)),
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
                (
                    "access",
                    models.CharField(blank=True, default="token", max_length=500),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                ("groups", models.TextField(blank=True)),
                ("rule", models.CharField(blank=True, max_length=255)),
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
                (
                    "selection",
                    models.CharField(
                        choices=[
                            ("all", "Everything published"),
                            ("tags", "Everything with these tags"),
                            ("chosen", "Only the ones chosen here"),
                        ],
                        default="all",
                        max_length=8,
                    ),
                ),
                ("tags", models.CharField(blank=True, max_length=500)),
                (
                    "prompts",
                    models.ManyToManyField(
                        blank=True, related_name="servers", to="mcp_app.prompt"
                    ),
                ),
                (
                    "published",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_app.definitionversion",
                    ),
                ),
                (
                    "resources",
                    models.ManyToManyField(
                        blank=True, related_name="servers", to="mcp_app.resource"
                    ),
                ),
                (
                    "templates",
                    models.ManyToManyField(
                        blank=True,
                        related_name="servers",
                        to="mcp_app.resourcetemplate",
                    ),
                ),
            ],
            options={
                "verbose_name": "server",
                "verbose_name_plural": "servers",
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
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
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "prefix",
                    mcp_app.models.fields.ExactCharField(editable=False, max_length=16),
                ),
                (
                    "digest",
                    mcp_app.models.fields.DigestField(editable=False, unique=True),
                ),
                (
                    "family",
                    mcp_app.models.fields.ExactCharField(
                        db_index=True,
                        editable=False,
                        max_length=32,
                        validators=[django.core.validators.MinLengthValidator(16)],
                    ),
                ),
                (
                    "may",
                    models.CharField(
                        choices=[("read", "Read"), ("change", "Read and change")],
                        default="read",
                        max_length=8,
                        verbose_name="may",
                    ),
                ),
                (
                    "tags",
                    models.CharField(blank=True, max_length=500, verbose_name="tags"),
                ),
                (
                    "everywhere",
                    models.BooleanField(default=True, verbose_name="everywhere"),
                ),
                (
                    "networks",
                    models.CharField(
                        blank=True, max_length=500, verbose_name="networks"
                    ),
                ),
                (
                    "created",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                (
                    "expires",
                    models.DateTimeField(blank=True, null=True, verbose_name="expires"),
                ),
                (
                    "revoked",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="revoked"
                    ),
                ),
                (
                    "used",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="last used"
                    ),
                ),
                (
                    "made_with",
                    models.UUIDField(
                        blank=True, editable=False, null=True, unique=True
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "servers",
                    models.ManyToManyField(
                        blank=True,
                        related_name="+",
                        to="mcp_app.server",
                        verbose_name="servers",
                    ),
                ),
            ],
            options={
                "verbose_name": "access token",
                "verbose_name_plural": "access tokens",
                "ordering": ["-created", "-pk"],
                "permissions": [
                    ("manage_tokens", "Can manage everyone's access tokens")
                ],
                "default_permissions": (),
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
                (
                    "stream",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=32
                    ),
                ),
                ("streams", models.PositiveIntegerField(db_default=0, default=0)),
                ("seen", models.BigIntegerField(db_default=0, default=0)),
                ("logged", models.BigIntegerField(db_default=0, default=0)),
                (
                    "holder",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=32
                    ),
                ),
                ("whole", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "indexes": [models.Index(fields=["holder"], name="mcp_session_holder")],
            },
        ),
        migrations.CreateModel(
            name="Question",
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
                ("rpc_id", mcp_app.models.fields.ExactCharField(max_length=64)),
                ("answer", models.TextField(blank=True)),
                ("created_ms", models.BigIntegerField(db_index=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="mcp_app.session",
                    ),
                ),
            ],
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
        ),
        migrations.CreateModel(
            name="Stream",
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
                ("public_id", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("requests", models.TextField()),
                ("request_key", models.CharField(max_length=64, null=True)),
                ("request_digest", mcp_app.models.fields.DigestField(blank=True)),
                (
                    "tool",
                    mcp_app.models.fields.ExactCharField(blank=True, max_length=128),
                ),
                ("head_seq", models.BigIntegerField(default=0)),
                ("floor_seq", models.BigIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("completed", "Completed"),
                            ("aborted", "Aborted"),
                            ("closed", "Closed"),
                        ],
                        max_length=9,
                    ),
                ),
                ("owner", models.CharField(max_length=32)),
                ("last_batch", models.CharField(max_length=32)),
                ("size", models.BigIntegerField(default=0)),
                ("created_ms", models.BigIntegerField()),
                ("ended_ms", models.BigIntegerField(null=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="request_streams",
                        to="mcp_app.session",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("payload", models.TextField()),
                ("size", models.BigIntegerField()),
                (
                    "stream",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="mcp_app.stream",
                    ),
                ),
            ],
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
                (
                    "content_hash",
                    mcp_app.models.versions.ContentHashField(
                        default="", editable=False
                    ),
                ),
                ("broken", models.TextField(blank=True, editable=False)),
                ("name", mcp_app.models.fields.ExactCharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("description", models.TextField(blank=True)),
                ("kind", models.CharField(default="text", max_length=16)),
                (
                    "config",
                    mcp_app.models.fields.JSONTextField(default="{}", shape="object"),
                ),
                (
                    "icons",
                    mcp_app.models.fields.JSONTextField(blank=True, shape="array"),
                ),
                ("permission", models.CharField(blank=True, max_length=255)),
                ("groups", models.TextField(blank=True)),
                ("rule", models.CharField(blank=True, max_length=255)),
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
                (
                    "source",
                    models.CharField(
                        choices=[("here", "made here"), ("code", "from code")],
                        default="here",
                        editable=False,
                        max_length=4,
                    ),
                ),
                (
                    "published_identity",
                    models.CharField(
                        editable=False, max_length=64, null=True, unique=True
                    ),
                ),
                ("tokens", models.PositiveIntegerField(default=0, editable=False)),
                ("to_fix", models.PositiveIntegerField(default=0, editable=False)),
                ("advices", models.PositiveIntegerField(default=0, editable=False)),
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
                    "published",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_app.definitionversion",
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
                "verbose_name": "tool",
                "verbose_name_plural": "tools",
                "ordering": ["position", "name"],
            },
        ),
        migrations.AddField(
            model_name="server",
            name="tools",
            field=models.ManyToManyField(
                blank=True, related_name="servers", to="mcp_app.tool"
            ),
        ),
        migrations.CreateModel(
            name="Topic",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", mcp_app.models.fields.ExactCharField(max_length=32)),
                ("ref", mcp_app.models.fields.ExactCharField(max_length=255)),
                ("version", models.BigIntegerField(db_index=True)),
                ("previous", models.BigIntegerField(default=0)),
                ("folded", models.TextField(blank=True)),
                ("changed_ms", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "ref"), name="mcp_topic")
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
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="mcp_app.session",
                    ),
                ),
                (
                    "worker",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="mcp_app.worker",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="definitionversion",
            constraint=models.UniqueConstraint(
                fields=("kind", "ref", "number"), name="mcp_version_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="prompt",
            constraint=models.UniqueConstraint(
                fields=("name",),
                name="mcp_prompt_name",
                violation_error_code="unique",
                violation_error_message="Another prompt has this name.",
            ),
        ),
        migrations.AddConstraint(
            model_name="resource",
            constraint=models.UniqueConstraint(
                fields=("uri_digest",), name="mcp_resource_uri"
            ),
        ),
        migrations.AddConstraint(
            model_name="resourcetemplate",
            constraint=models.UniqueConstraint(
                fields=("uri_template_digest",), name="mcp_template_uri"
            ),
        ),
        migrations.AddIndex(
            model_name="question",
            index=models.Index(fields=["rpc_id"], name="mcp_question_id"),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                fields=("session", "rpc_id"), name="mcp_question"
            ),
        ),
        migrations.AddConstraint(
            model_name="loggedmessage",
            constraint=models.UniqueConstraint(
                fields=("session", "seq"), name="mcp_logged"
            ),
        ),
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(fields=["ended_ms", "owner"], name="mcp_stream_end"),
        ),
        migrations.AddIndex(
            model_name="stream",
            index=models.Index(fields=["session", "state"], name="mcp_stream_state"),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(
                fields=("session", "request_key"), name="mcp_request"
            ),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(
                fields=("public_id",), name="mcp_stream"
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.UniqueConstraint(
                fields=("name",),
                name="mcp_tool_name",
                violation_error_code="unique",
                violation_error_message="Another tool has this name.",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                fields=("session", "uri_digest"), name="mcp_subscription"
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                fields=("worker", "uri_digest"), name="mcp_worker_subscription"
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("session__isnull", True), ("worker__isnull", True), _connector="OR"
                ),
                name="mcp_subscription_of_one",
            ),
        ),
    ]
