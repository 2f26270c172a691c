"""Companies, their customers and machines, what is hired out, and payments."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Company(models.Model):
    name = models.CharField(max_length=60)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE)

    def __str__(self) -> str:
        return self.name


class Owned(models.Model):
    company = models.ForeignKey(Company, models.CASCADE)

    class Meta:
        abstract = True


class Customer(Owned):
    name = models.CharField(max_length=60)
    email = models.EmailField()
    phone = models.CharField(max_length=30)

    def __str__(self) -> str:
        return self.name


class Machine(Owned):
    code = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    day_rate = models.DecimalField(max_digits=8, decimal_places=2)
    in_service = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.code


class Hire(Owned):
    class State(models.TextChoices):
        BOOKED = "booked"
        OUT = "out", "Out on hire"
        BACK = "back"
        CANCELLED = "cancelled"

    customer = models.ForeignKey(Customer, models.CASCADE, related_name="hires")
    machine = models.ForeignKey(Machine, models.CASCADE)
    begins = models.DateField()
    ends = models.DateField()
    state = models.CharField(max_length=10, choices=State)
    net_total = models.DecimalField(max_digits=10, decimal_places=2)
    paid = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.machine_id}, {self.begins}"


class Payment(models.Model):
    hire = models.ForeignKey(Hire, models.CASCADE)
    paid = models.DateField()
    amount = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return f"{self.amount}"
