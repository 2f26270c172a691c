"""Tokens that a colleague offers by a link, and tokens for named tools only."""

from __future__ import annotations

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_app", "0020_ending_subscriptions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="accesstoken",
            name="tools",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=2000,
                verbose_name="only these tools",
            ),
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="maker",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="good_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
