"""The total of an order, which was only the sum of its lines before."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def add_up(apps: Any, schema_editor: Any) -> None:
    lines = apps.get_model("shop", "OrderLine").objects.select_related("product")
    totals: dict[int, Any] = {}
    for line in lines.using(schema_editor.connection.alias).iterator():
        price = line.quantity * line.product.price
        totals[line.order_id] = totals.get(line.order_id, 0) + price
    orders = apps.get_model("shop", "Order").objects
    for key, total in totals.items():
        orders.using(schema_editor.connection.alias).filter(pk=key).update(total=total)


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_tables")]
    operations = [
        migrations.AddField(
            model_name="order",
            name="total",
            field=models.DecimalField(decimal_places=2, default=0, max_digits=10),
        ),
        migrations.RunPython(add_up, migrations.RunPython.noop),
    ]
