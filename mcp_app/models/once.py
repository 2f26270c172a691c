"""Results of the steps of `ctx.once`, each written in the transaction of its step."""

from __future__ import annotations

from django.db import models
from django.db.models.expressions import CombinedExpression

from mcp_app.models.fields import DigestField, JSONTextField


class OnceQuerySet(models.QuerySet["Once"]):
    def older_than(self, created_ms: int | CombinedExpression) -> OnceQuerySet:
        return self.filter(created_ms__lt=created_ms)


class Once(models.Model):
    """`result` is any JSON; the digests are of the round trip's id and of the key."""

    round_trip = DigestField()
    key = DigestField()
    result = JSONTextField(shape="any")
    created_ms = models.BigIntegerField(db_index=True)

    objects = OnceQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["round_trip", "key"], name="mcp_once"),
        ]

    def __str__(self) -> str:
        return f"{self.round_trip[:12]} {self.key[:12]}"
