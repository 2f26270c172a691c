"""The tables of the site."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Parcel(models.Model):
    number = models.CharField(max_length=20, unique=True)
    state = models.CharField(max_length=10, default="open")

    objects: ClassVar[models.Manager[Parcel]] = models.Manager()

    class Meta:
        app_label = "parcels"

    def __str__(self) -> str:
        return self.number
