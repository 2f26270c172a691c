"""Invoices of orders."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0003_delivery")]
    operations = [
        migrations.CreateModel(
            name="Invoice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("number", models.PositiveIntegerField(unique=True)),
                ("due", models.DateField()),
                ("paid", models.BooleanField(default=False)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=models.deletion.PROTECT,
                        related_name="invoices",
                        to="shop.customer",
                    ),
                ),
                (
                    "order",
                    models.OneToOneField(
                        on_delete=models.deletion.CASCADE,
                        related_name="invoice",
                        to="shop.order",
                    ),
                ),
            ],
            options={"ordering": ["-number"]},
        ),
    ]
