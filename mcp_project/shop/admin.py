"""The shop's own pages in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mcp_project.shop import mcp
from mcp_project.shop.models import (
    Customer,
    Delivery,
    Invoice,
    Order,
    OrderLine,
    Product,
)

if TYPE_CHECKING:
    ProductBase = admin.ModelAdmin[Product]
    CustomerBase = admin.ModelAdmin[Customer]
    OrderBase = admin.ModelAdmin[Order]
    InvoiceBase = admin.ModelAdmin[Invoice]
    DeliveryBase = admin.ModelAdmin[Delivery]
    LineBase = admin.TabularInline[OrderLine, Order]
else:
    ProductBase = CustomerBase = OrderBase = admin.ModelAdmin
    InvoiceBase = DeliveryBase = admin.ModelAdmin
    LineBase = admin.TabularInline


@admin.register(Product)
class ProductAdmin(ProductBase):
    list_display = ("name", "sku", "price", "stock")
    search_fields = ("name", "sku")


@admin.register(Customer)
class CustomerAdmin(CustomerBase):
    list_display = ("name", "email")
    search_fields = ("name", "email")


class LineInline(LineBase):
    model = OrderLine
    extra = 0
    autocomplete_fields = ("product",)


@admin.register(Order)
class OrderAdmin(OrderBase):
    list_display = ("number", "customer", "placed", "status")
    list_filter = ("status",)
    list_select_related = ("customer",)
    search_fields = ("number", "customer__name")
    autocomplete_fields = ("customer",)
    inlines: ClassVar = [LineInline]
    actions = ("mark_paid",)

    @admin.action(description="Mark as paid", permissions=["change"])
    def mark_paid(self, request: HttpRequest, orders: QuerySet[Order]) -> None:
        """Mark open orders as paid, and tell whoever subscribes to that."""
        for order in orders.filter(status=Order.Status.OPEN):
            mcp.mark_paid(order)


@admin.register(Invoice)
class InvoiceAdmin(InvoiceBase):
    list_display = ("number", "customer", "due", "paid")
    list_filter = ("paid",)
    list_select_related = ("customer",)
    autocomplete_fields = ("order", "customer")


@admin.register(Delivery)
class DeliveryAdmin(DeliveryBase):
    list_display = ("product", "quantity", "ordered")
    list_select_related = ("product",)
