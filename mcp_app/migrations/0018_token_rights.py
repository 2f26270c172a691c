from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0017_token_by_default"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="accesstoken",
            options={
                "default_permissions": (),
                "ordering": ["-created", "-pk"],
                "permissions": [
                    ("manage_tokens", "Can manage everyone's access tokens")
                ],
                "verbose_name": "access token",
                "verbose_name_plural": "access tokens",
            },
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="made_with",
            field=models.UUIDField(blank=True, editable=False, null=True, unique=True),
        ),
    ]
