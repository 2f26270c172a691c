from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_app.interface.errors import ToolError
from mcp_app.kinds.query import reading as rows_module
from mcp_app.kinds.query.reading import RowReader
from mcp_app.kinds.query.shapes import Total
from tests.drill.models import Invoice, Order
from tests.kinds.query import shop

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.mark.parametrize("order", ["due", "-due", "customer.name", "-weight", None])
def test_pages_have_each_row_once_in_its_order(order: str | None) -> None:
    shop.fill()
    config = {"fields": ["id"], "order": [order] if order else [], "limit": 200}
    whole = shop.rows(config)
    assert len(whole) == 22
    assert _in_pages(shop.reader({**config, "limit": 3})) == whole


def test_pages_of_rows_whose_keys_are_random() -> None:
    """Each database has an order of its own for them."""
    for index in range(20):
        Invoice.objects.create(order=shop.order(str(index)))
    config = {"model": "drill.Invoice", "fields": ["key"], "limit": 3}
    keys = [each["key"] for each in _in_pages(shop.reader(config))]
    assert len(keys) == len({*keys}) == 20


def _in_pages(reader: RowReader) -> list[Any]:
    page = reader.page_at_place(None)
    rows = [*page.rows]
    while page.next is not None:
        assert len(page.rows) == reader.limit
        assert page.next.key is not None
        page = reader.page_at_place(page.next)
        rows += page.rows
    return rows


def test_a_row_that_was_added_meanwhile_shifts_nothing() -> None:
    for number in "bdf":
        shop.order(number)
    config = {"fields": ["number"], "order": ["number"], "limit": 2}
    reader = shop.reader(config)
    first = reader.page_at_place(None)
    for number in "ac":
        shop.order(number)
    assert reader.page_at_place(first.next).rows == [{"number": "f"}]


def test_the_total_is_that_of_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shop.fill()
    reader = shop.reader({"fields": ["number"], "count": True, "limit": 10})
    first = reader.page_at_place(None)
    assert first.total == Total(22, exact=True)
    Order.objects.all().delete()
    assert first.next is not None
    assert reader.page_at_place(first.next).total == Total(22, exact=True)

    monkeypatch.setattr(rows_module, "MOST_COUNTED", 5)
    for index in range(5):
        shop.order(str(index))
    assert reader.page_at_place(None).total == Total(5, exact=True)
    shop.order("one more")
    assert reader.page_at_place(None).total == Total(5, exact=False)


def test_a_page_ends_where_the_answer_is_full() -> None:
    for number in "abc":
        shop.order(number, note=number * 100)
    config = {"fields": ["number", "note"], "order": ["number"]}
    reader = shop.reader(config, size=300)
    page = reader.page_at_place(None)
    assert [each["number"] for each in page.rows] == ["a", "b"]
    assert [each["number"] for each in reader.page_at_place(page.next).rows] == ["c"]


@pytest.mark.parametrize(
    ("fields", "said"), [(["note", "id"], r"The row \d+ is"), (["note"], "The row is")]
)
def test_a_row_that_is_larger_than_an_answer(fields: list[str], said: str) -> None:
    """Its key is named if the query shows keys."""
    shop.order("a", note="a" * 500)
    reader = shop.reader({"fields": fields}, size=300)
    with pytest.raises(ToolError, match=f"{said} larger than 300 bytes"):
        reader.page_at_place(None)


def test_a_row_that_is_too_large_waits_for_its_page() -> None:
    shop.order("a")
    shop.order("b", note="b" * 500)
    reader = shop.reader({"fields": ["note"], "order": ["number"]}, size=300)
    page = reader.page_at_place(None)
    assert page.rows == [{"note": ""}]
    with pytest.raises(ToolError, match="larger"):
        reader.page_at_place(page.next)


def test_statements() -> None:
    """Count, page and one for each list, however many rows and paths there are."""
    shop.fill()
    config = {
        "fields": ["number", "customer.name", "customer.country.name"],
        "order": ["customer.country.name"],
        "lists": [
            {"path": "items", "fields": ["stock.sku"]},
            {"path": "suppliers", "fields": ["code"]},
        ],
        "count": True,
    }
    reader = shop.reader(config)
    with CaptureQueriesContext(connection) as statements:
        page = reader.page_at_place(None)
    assert len(page.rows) == 22
    assert len(statements) == 4


def test_from_now_on_is_from_the_moment_of_the_call() -> None:
    hour = timedelta(hours=1)
    for number, moment in (("past", -hour), ("next", hour)):
        shop.order(number, created=timezone.now() + moment)
    for period, number in (("from_now_on", "next"), ("until_now", "past")):
        asked = {"path": "created", "lookup": "period", "value": period}
        config = {"fields": ["number"], "filters": [asked]}
        assert shop.rows(config) == [{"number": number}]


def test_totals_are_those_of_all_pages() -> None:
    shop.fill()
    state = {"path": "state", "lookup": "exact", "value": "sent"}
    total = {"aggregate": "sum", "path": "invoice.order.total", "name": "money"}
    config = {"fields": ["number"], "filters": [state], "totals": [total]}
    reader = shop.reader({**config, "limit": 3})
    first = reader.page_at_place(None)
    second = reader.page_at_place(first.next)
    [line] = shop.groups({"filters": [state], "measures": [total]})
    assert first.totals == second.totals == line


@pytest.mark.parametrize("typed", ["6343932", "+49561 634-39-32", "(561) 634/3932"])
def test_a_number_is_found_however_it_is_written(typed: str) -> None:
    notes = ["+49 561 634 39 32", "0561/6343932", "+49 561 634 39 33", ""]
    for number, note in enumerate(notes):
        shop.order(f"a{number}", note=note)
    asked = {"path": ["number", "note"], "lookup": "words", "parameter": "search"}
    config = {"fields": ["note"], "filters": [asked]}
    found = [each["note"] for each in shop.rows(config, search=typed)]
    assert found in ([notes[0]], notes[:2])


@pytest.mark.parametrize("typed", ["東京123", "東京特許許可局123", "東-2024-15"])
def test_no_search_passes_over_letters(typed: str) -> None:
    # This took a minute, in which the process did nothing else.
    shop.order("a1", note="東京特許許可局 " * 40 + "東の京, 1, 2, 3")
    shop.order("a2", note=f"({typed})")
    asked = {"path": "note", "lookup": "words", "parameter": "search"}
    config = {"fields": ["number"], "filters": [asked]}
    assert [each["number"] for each in shop.rows(config, search=typed)] == ["a2"]
