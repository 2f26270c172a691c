"""Pages of a query, while another process writes and deletes rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

import pytest
from django.db import connection

from tests.drill.models import Order
from tests.drill.running import ROOT
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

PROGRAM: Final = [sys.executable, "-m", "tests.kinds.query.coming_and_going"]
ORDERS: Final = ("weight", "-weight", "due", "-due", None)
"""By columns that are often null, in both directions, and by the key alone."""


@contextmanager
def _writer() -> Iterator[Callable[[], int]]:
    """Start the other process; give what lets it write and delete once."""
    name = str(connection.settings_dict["NAME"])
    with subprocess.Popen(
        [*PROGRAM, name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asking, telling = process.stdin, process.stdout

        def write() -> int:
            asking.write("\n")
            asking.flush()
            return int(telling.readline())

        yield write
        asking.close()


def test_each_of_a_thousand_rows_comes_exactly_once() -> None:
    random = Random(7)  # noqa: S311 - no secret
    lasting = {f"row{each}" for each in range(1_000)}
    Order.objects.bulk_create(shop.random_order(each, random) for each in lasting)
    with _writer() as write:
        for order in ORDERS:
            numbers = [*_numbers(order, write)]
            throughout = [each for each in numbers if each in lasting]
            assert len(throughout) == len(lasting)
            assert {*throughout} == lasting
            assert len(numbers) == len({*numbers})


def _numbers(order: str | None, write: Callable[[], int]) -> Iterator[str]:
    """Yield the numbers of all pages; somebody writes before each further one."""
    config = {"fields": ["number"], "order": [order] if order else [], "most": 60}
    reader = shop.reader(config)
    page = reader.page(None)
    while True:
        yield from (each["number"] for each in page.rows)
        if page.next is None:
            return
        assert write() > 0
        page = reader.page(page.next)
