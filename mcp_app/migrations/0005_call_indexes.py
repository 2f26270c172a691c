"""Indexes of calls without the rows that nobody looks up: most calls are in none."""

from __future__ import annotations

from django.db import migrations, models

from mcp_app.models.fields import PartialIndex

INDEXES = (
    PartialIndex(
        fields=["outcome", "time_ms"],
        name="mcp_call_outcome",
        rows=~models.Q(outcome="answered"),
    ),
    PartialIndex(
        fields=["user_name", "time_ms"],
        name="mcp_call_user",
        rows=~models.Q(user_name=""),
    ),
    PartialIndex(
        fields=["failure"], name="mcp_call_failure", rows=~models.Q(failure="")
    ),
)


class Migration(migrations.Migration):
    dependencies = [("mcp_app", "0004_permissions")]

    operations = [
        operation
        for index in INDEXES
        for operation in (
            migrations.RemoveIndex(model_name="call", name=index.name),
            migrations.AddIndex(model_name="call", index=index),
        )
    ]
