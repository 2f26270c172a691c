"""People who sign in by e-mail, and their shifts."""

from __future__ import annotations

from uuid import uuid4

from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    username = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []

    class Meta:
        app_label = "othersite"


class Shift(models.Model):
    begins = models.DateTimeField()
    day = models.DateField()
    at = models.TimeField()
    lasts = models.DurationField()
    wage = models.DecimalField(max_digits=8, decimal_places=2)
    person = models.ForeignKey(Person, on_delete=models.CASCADE)

    class Meta:
        app_label = "othersite"

    def __str__(self) -> str:
        return f"{self.begins}"
