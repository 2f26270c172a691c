"""The table in which drill tools leave the trace that they ran, and a small shop."""

from __future__ import annotations

from uuid import uuid4

from django.db import models


class Ledger(models.Model):
    key = models.CharField(max_length=200, db_index=True)
    worker = models.CharField(max_length=100)
    time = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.key} by {self.worker}"


class Hideable(models.Model):
    """Rows of a shop, of which nobody sees the hidden ones."""

    hidden = models.BooleanField(default=False)

    class Meta:
        abstract = True


class Country(Hideable):
    code = models.CharField(max_length=2, unique=True)
    name = models.CharField(max_length=60)

    def __str__(self) -> str:
        return self.name


class Customer(Hideable):
    name = models.CharField(max_length=60)
    email = models.EmailField(unique=True)
    country = models.ForeignKey(
        Country, models.SET_NULL, to_field="code", null=True, related_name="customers"
    )

    def __str__(self) -> str:
        return self.name


class Stock(Hideable):
    sku = models.CharField("SKU", max_length=20, unique=True)
    level = models.IntegerField(default=0)
    price = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return self.sku


class Order(Hideable):
    class State(models.TextChoices):
        OPEN = "open", "Waits to be sent"
        SENT = "sent"
        BACK = "back", "Came back"

    number = models.CharField(max_length=20, unique=True)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    total = models.DecimalField(max_digits=12, decimal_places=2)
    weight = models.FloatField(null=True)
    created = models.DateTimeField()
    due = models.DateField(null=True)
    note = models.TextField(blank=True)
    margin = models.IntegerField(default=0)
    customer = models.ForeignKey(
        Customer, models.SET_NULL, null=True, related_name="orders"
    )
    suppliers = models.ManyToManyField(Country, related_name="supplies")

    def __str__(self) -> str:
        return self.number


class Item(Hideable):
    order = models.ForeignKey(Order, models.CASCADE, related_name="items")
    stock = models.ForeignKey(Stock, models.CASCADE, related_name="items")
    amount = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return f"{self.amount} of {self.stock_id}"


class Invoice(Hideable):
    key = models.UUIDField(primary_key=True, default=uuid4)
    order = models.OneToOneField(Order, models.CASCADE, related_name="invoice")
    customer = models.ForeignKey(
        Customer, models.CASCADE, null=True, related_name="invoices"
    )
    paid = models.BooleanField(null=True)

    def __str__(self) -> str:
        return str(self.key)
