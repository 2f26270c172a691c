"""No permissions for tables without a page: who gives rights would see them all."""

from __future__ import annotations

from typing import Final

from django.db import migrations

WITHOUT_A_PAGE: Final = (
    *("blob", "change", "counter", "event", "loggedmessage", "once"),
    *("question", "stream", "subscription", "topic", "worker"),
)


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0003_page_size")]

    operations = [
        migrations.AlterModelOptions(name=name, options={"default_permissions": ()})
        for name in WITHOUT_A_PAGE
    ]
