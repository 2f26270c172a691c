"""Products, customers and their orders."""

from __future__ import annotations

from django.db import models


class Product(models.Model):
    sku = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    stock = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Customer(models.Model):
    name = models.CharField(max_length=100)
    email = models.EmailField(unique=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    class Status(models.TextChoices):
        OPEN = "open"
        PAID = "paid"
        SENT = "sent"
        RETURNED = "returned"

    number = models.PositiveIntegerField(unique=True)
    customer = models.ForeignKey(Customer, models.PROTECT, related_name="orders")
    placed = models.DateField(db_index=True)
    status = models.CharField(max_length=10, choices=Status.choices)
    total = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"Order {self.number}"


class OrderLine(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, models.PROTECT, related_name="lines")
    quantity = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.quantity} of {self.product}"


class Invoice(models.Model):
    number = models.PositiveIntegerField(unique=True)
    order = models.OneToOneField(Order, models.CASCADE, related_name="invoice")
    customer = models.ForeignKey(Customer, models.PROTECT, related_name="invoices")
    due = models.DateField()
    paid = models.BooleanField(default=False)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"Invoice {self.number}"


class Delivery(models.Model):
    """What was ordered from the supplier."""

    product = models.ForeignKey(Product, models.PROTECT, related_name="deliveries")
    quantity = models.PositiveIntegerField()
    ordered = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return f"{self.quantity} of {self.product}"
