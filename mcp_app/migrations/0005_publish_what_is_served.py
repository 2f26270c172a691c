"""What was served stays so: each row becomes the first version of itself."""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

from mcp_app.models.content import content_of
from mcp_app.models.fields import digest
from mcp_app.protocol import jsonrpc

COMMON = (
    *("name", "title", "description", "permission", "timeout", "tags", "position"),
    *("kind", "config", "icons"),
)
READABLE = (*COMMON, "mime_type", "annotations", "ttl_ms", "public")
HINTS = ("read_only", "destructive", "idempotent", "open_world")
COLUMNS = {
    "Tool": (*COMMON, "input_schema", "output_schema", *HINTS),
    "Resource": (*READABLE, "uri", "size"),
    "ResourceTemplate": (*READABLE, "uri_template"),
    "Prompt": (*COMMON, "arguments"),
    "Server": (
        *("title", "description", "instructions", "version", "website_url", "icons"),
        *("selection", "tags"),
    ),
}
IDENTITIES = {
    "Tool": "name",
    "Resource": "uri",
    "ResourceTemplate": "uri_template",
    "Prompt": "name",
}


def publish(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    alias = schema_editor.connection.alias
    versions = apps.get_model("mcp_app", "DefinitionVersion").objects.using(alias)
    for name, columns in COLUMNS.items():
        model = apps.get_model("mcp_app", name)
        for row in model.objects.using(alias).iterator():
            text = jsonrpc.write(content_of(row, columns))
            version = versions.create(
                kind=name.lower(),
                ref=str(row.pk),
                number=1,
                content=text.decode(),
                hash=digest(text),
                created=timezone.now(),
            )
            model.objects.using(alias).filter(pk=row.pk).update(
                published=version, content_hash=digest(text), **_identity(name, row)
            )


def _identity(name: str, row: Any) -> dict[str, str]:
    if name not in IDENTITIES:
        return {}
    return {"published_identity": digest(getattr(row, IDENTITIES[name]).encode())}


def serve_what_is_published(
    apps: Apps, schema_editor: BaseDatabaseSchemaEditor
) -> None:
    """Leave rows of which clients see the working copy, and stop all others.

    Before there were versions, each row was served as it was.  Changes to what code
    declares would be definitions of their own, and are deleted.
    """
    alias = schema_editor.connection.alias
    for name in COLUMNS:
        rows = apps.get_model("mcp_app", name).objects.using(alias)
        served = models.Q(published__hash=models.F("content_hash"))
        if name == "Server":
            served &= ~models.Q(selection="chosen")
        else:
            rows.filter(source="code").delete()
            rows.update(published_identity=None)
        # Not every database updates rows that it finds by a join.
        kept = set(rows.filter(served).values_list("pk", flat=True))
        for key in rows.filter(enabled=True).values_list("pk", flat=True):
            if key not in kept:
                rows.filter(pk=key).update(enabled=False)
        rows.update(published=None, content_hash="")
    apps.get_model("mcp_app", "DefinitionVersion").objects.using(alias).all().delete()


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0004_versions")]

    operations = [migrations.RunPython(publish, serve_what_is_published)]
