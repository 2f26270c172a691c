"""Defaults in the database, for processes of older code that insert rows meanwhile."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

LISTINGS = [
    ("all", "All of its tools"),
    ("search", "Three tools that search, and tools with these tags"),
]
NOTHING: Any = {"blank": True, "db_default": "", "default": ""}
LISTING: Any = {"choices": LISTINGS, "db_default": "all", "default": "all"}
FIELDS: list[tuple[str, str, models.Field[Any, Any]]] = [
    ("issuedtoken", "only_reads", models.BooleanField(db_default=False, default=False)),
    ("server", "listing", models.CharField(**LISTING, max_length=8)),
    ("server", "listed_tags", models.CharField(**NOTHING, max_length=500)),
    ("task", "send_ms", models.BigIntegerField(db_default=0, default=0)),
    ("tool", "keeps_values", models.BooleanField(db_default=False, default=False)),
    ("tool", "hidden_values", models.TextField(**NOTHING)),
]


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0030_connection_issuer")]

    operations = [migrations.AlterField(*each) for each in FIELDS]
