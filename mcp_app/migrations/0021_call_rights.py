"""Who may see calls, and the indexes by which they are found."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models, router


def rename(apps: Any, schema_editor: Any) -> None:
    """Call the right as it is called now, where there was one already."""
    _call_it(apps, schema_editor, "Can see calls")


def rename_back(apps: Any, schema_editor: Any) -> None:
    """Call the right as Django calls it."""
    _call_it(apps, schema_editor, "Can view call")


def _call_it(apps: Any, schema_editor: Any, name: str) -> None:
    """Rename it where it is: a site may have its users in another database."""
    permission = apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    here = router.allow_migrate_model(using, permission)
    if not here or router.db_for_write(permission) != using:
        return
    rows = permission.objects.using(using)
    own = rows.filter(content_type__app_label="mcp_app", codename="view_call")
    own.update(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("mcp_app", "0020_who_may_use"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="call",
            options={
                "default_permissions": (),
                "permissions": [("view_call", "Can see calls")],
                "verbose_name": "call",
                "verbose_name_plural": "calls",
            },
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(fields=["outcome", "time_ms"], name="mcp_call_outcome"),
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(fields=["user_name", "time_ms"], name="mcp_call_user"),
        ),
        migrations.RunPython(rename, rename_back, elidable=True),
    ]
