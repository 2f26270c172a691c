"""The demo's tools, tested as a site tests its own: `python manage.py test`."""

from __future__ import annotations

from datetime import date

from django.contrib.auth.models import Permission, User
from django.test import TestCase

from mcp_app import Declined
from mcp_app.test import Client, ToolFailed
from mcp_project.shop.mcp import mark_paid
from mcp_project.shop.models import Customer, Invoice, Order


class ShopTools(TestCase):
    ana: User

    @classmethod
    def setUpTestData(cls) -> None:
        cls.ana = User.objects.create_user("ana")
        rights = Permission.objects.filter(codename__in=["view_order", "change_order"])
        cls.ana.user_permissions.set(rights)
        customer = Customer.objects.create(name="Grace", email="grace@example.com")
        Order.objects.create(
            number=1042, customer=customer, placed=date(2026, 5, 4), status="paid"
        )

    def test_staff_read_what_the_admin_shows(self) -> None:
        self.ana.is_staff = True
        self.ana.save()
        rows = Client(self.ana).call("admin_list", model="shop.order").data["rows"]
        self.assertEqual([each["customer"] for each in rows], ["Grace"])

    def test_looking_orders_up(self) -> None:
        client = Client(self.ana)
        status = {"number": 1042, "placed": "2026-05-04", "status": "paid"}
        self.assertEqual(client.call("order_status", number=1042).data, status)
        found = client.call("find_orders", customer="rac", since=date(2026, 5, 1)).data
        self.assertEqual(found, [{**status, "customer": "Grace"}])
        self.assertEqual(client.call("find_orders", status="open").data, [])
        order = client.read("shop://orders/1042").data
        self.assertEqual(order["customer"], "Grace")
        with self.assertRaisesMessage(ToolFailed, "There is no order 7."):
            client.call("order_status", number=7)

    def test_a_paid_order_is_told(self) -> None:
        client = Client(self.ana)
        waiting = {"name": "order.paid", "wait": 0}
        cursor = client.call("wait_for_event", **waiting).data["cursor"]
        mark_paid(Order.objects.get())
        told = client.call("wait_for_event", cursor=cursor, **waiting).data["events"]
        data = {"number": 1042, "customer": "Grace", "total": 0.0}
        self.assertEqual([each["data"] for each in told], [data])

    def test_invoices(self) -> None:
        order = Order.objects.get()
        Invoice.objects.create(
            number=7, order=order, customer=order.customer, due=date(2026, 6, 4)
        )
        accountant = Client(User.objects.create_superuser("eve"))
        found = accountant.call("invoice_list", search="GRA", paid=False).data
        self.assertEqual([row["number"] for row in found["rows"]], [7])
        counted = accountant.call("invoice_count", by="due_month").data["groups"]
        self.assertEqual(counted, [{"due_month": "2026-06-01", "count": 1}])
        Client(self.ana).assertHidden("invoice_list")

    def test_a_note(self) -> None:
        Client(self.ana).call("add_note", number=1042, text="Ring twice.")
        self.assertEqual(Order.objects.get().note, "Ring twice.")
        Client(User.objects.create_user("eve")).assertHidden("add_note")

    def test_a_report(self) -> None:
        week = {"monday": "2026-05-04", "orders": 1, "total": 0}
        self.assertEqual(Client(self.ana).call("sales_report").data, [week])

    def test_a_table(self) -> None:
        question = "Who is coming on Friday?"
        coming = Client(self.ana, answers={question: {"name": "Ada", "people": 3}})
        text = "A table for 3 is booked on Friday for Ada."
        self.assertEqual(coming.call("book_table", day="Friday").data, text)
        away = Client(self.ana, answers={question: Declined()})
        text = "No table was booked."
        self.assertEqual(away.call("book_table", day="Friday").data, text)
