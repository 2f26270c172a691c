"""What the shop has ordered from its supplier."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_order_total")]
    operations = [
        migrations.CreateModel(
            name="Delivery",
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
                ("quantity", models.PositiveIntegerField()),
                ("ordered", models.DateTimeField(auto_now_add=True)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=models.deletion.PROTECT,
                        related_name="deliveries",
                        to="shop.product",
                    ),
                ),
            ],
            options={"verbose_name_plural": "deliveries", "ordering": ["-pk"]},
        ),
    ]
