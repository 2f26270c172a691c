"""Published versions, overlays of code, and choices of servers."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import mcp_app.models.fields
import mcp_app.models.versions


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0003_topics_and_workers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="prompt",
            name="advices",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="prompt",
            name="broken",
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name="prompt",
            name="content_hash",
            field=mcp_app.models.versions.ContentHashField(default="", editable=False),
        ),
        migrations.AddField(
            model_name="prompt",
            name="published_identity",
            field=models.CharField(
                editable=False, max_length=64, null=True, unique=True
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="source",
            field=models.CharField(
                choices=[("here", "made here"), ("code", "from code")],
                default="here",
                editable=False,
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="to_fix",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="prompt",
            name="tokens",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resource",
            name="advices",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resource",
            name="broken",
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name="resource",
            name="content_hash",
            field=mcp_app.models.versions.ContentHashField(default="", editable=False),
        ),
        migrations.AddField(
            model_name="resource",
            name="published_identity",
            field=models.CharField(
                editable=False, max_length=64, null=True, unique=True
            ),
        ),
        migrations.AddField(
            model_name="resource",
            name="source",
            field=models.CharField(
                choices=[("here", "made here"), ("code", "from code")],
                default="here",
                editable=False,
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="resource",
            name="to_fix",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resource",
            name="tokens",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="advices",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="broken",
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="content_hash",
            field=mcp_app.models.versions.ContentHashField(default="", editable=False),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="published_identity",
            field=models.CharField(
                editable=False, max_length=64, null=True, unique=True
            ),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="source",
            field=models.CharField(
                choices=[("here", "made here"), ("code", "from code")],
                default="here",
                editable=False,
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="to_fix",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="tokens",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="server",
            name="broken",
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name="server",
            name="content_hash",
            field=mcp_app.models.versions.ContentHashField(default="", editable=False),
        ),
        migrations.AddField(
            model_name="server",
            name="prompts",
            field=models.ManyToManyField(
                blank=True, related_name="servers", to="mcp_app.prompt"
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="resources",
            field=models.ManyToManyField(
                blank=True, related_name="servers", to="mcp_app.resource"
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="templates",
            field=models.ManyToManyField(
                blank=True, related_name="servers", to="mcp_app.resourcetemplate"
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="tools",
            field=models.ManyToManyField(
                blank=True, related_name="servers", to="mcp_app.tool"
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="advices",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="tool",
            name="broken",
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name="tool",
            name="content_hash",
            field=mcp_app.models.versions.ContentHashField(default="", editable=False),
        ),
        migrations.AddField(
            model_name="tool",
            name="published_identity",
            field=models.CharField(
                editable=False, max_length=64, null=True, unique=True
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="source",
            field=models.CharField(
                choices=[("here", "made here"), ("code", "from code")],
                default="here",
                editable=False,
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="to_fix",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="tool",
            name="tokens",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AlterField(
            model_name="server",
            name="selection",
            field=models.CharField(
                choices=[
                    ("all", "Everything published"),
                    ("tags", "Everything with these tags"),
                    ("chosen", "Only the ones chosen here"),
                ],
                default="all",
                max_length=8,
            ),
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
                    ("behind", "Can change what stands behind a definition"),
                    ("stop", "Can stop and start"),
                    ("grant", "Can change who may use it"),
                    ("bundle", "Can import and export bundles"),
                ],
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="prompt",
            name="published",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mcp_app.definitionversion",
            ),
        ),
        migrations.AddField(
            model_name="resource",
            name="published",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mcp_app.definitionversion",
            ),
        ),
        migrations.AddField(
            model_name="resourcetemplate",
            name="published",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mcp_app.definitionversion",
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="published",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mcp_app.definitionversion",
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="published",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="mcp_app.definitionversion",
            ),
        ),
        migrations.AddConstraint(
            model_name="definitionversion",
            constraint=models.UniqueConstraint(
                fields=("kind", "ref", "number"), name="mcp_version_number"
            ),
        ),
    ]
