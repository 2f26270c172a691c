"""Pages of a query, while another process writes and deletes rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random
from typing import Final

import pytest
from django.db import connection

from tests.drill.models import Order
from tests.drill.programs import Program
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

PROGRAM: Final = [sys.executable, "-m", "tests.kinds.query.coming_and_going"]
PATIENCE_S: Final = 60
ORDERS: Final = ("weight", "-weight", "due", "-due", None)
"""By columns that are often null, in both directions, and by the key alone."""


def test_each_of_a_thousand_rows_comes_exactly_once() -> None:
    random = Random(7)  # noqa: S311 - no secret
    lasting = {f"row{each}" for each in range(1_000)}
    Order.objects.bulk_create(shop.random_order(each, random) for each in lasting)
    name = str(connection.settings_dict["NAME"])
    with Program([*PROGRAM, name], pipes=True) as writer:
        for order in ORDERS:
            numbers = [*_numbers(order, writer)]
            throughout = [each for each in numbers if each in lasting]
            assert len(throughout) == len(lasting)
            assert {*throughout} == lasting
            assert len(numbers) == len({*numbers})


def _numbers(order: str | None, writer: Program) -> Iterator[str]:
    """Yield the numbers of all pages; somebody writes before each further one."""
    config = {"fields": ["number"], "order": [order] if order else [], "limit": 60}
    reader = shop.reader(config)
    page = reader.page_at_place(None)
    while True:
        yield from (each["number"] for each in page.rows)
        if page.next is None:
            return
        writer.say("")
        assert int(writer.hear(PATIENCE_S)) > 0
        page = reader.page_at_place(page.next)
